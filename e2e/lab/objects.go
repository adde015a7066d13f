// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/template"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// object is what the tables of this package write inline.
type object = map[string]any

// loadObjects reads every YAML document of the files that match pattern. Patterns name files of modules in the module
// cache; edit may change the text first (those files have placeholders of three different kinds).
func loadObjects(pattern string, edit func(text []byte) ([]byte, error)) ([]*unstructured.Unstructured, error) {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no file matches %s", pattern)
	}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if edit != nil {
			if text, err = edit(text); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
		}
		docs, err := decodeObjects(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		objects = append(objects, docs...)
	}
	return objects, nil
}

func decodeObjects(text []byte) ([]*unstructured.Unstructured, error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	var objects []*unstructured.Unstructured
	for {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if u.GetKind() != "" {
			objects = append(objects, u)
		}
	}
}

// rendered returns an edit for loadObjects that executes the text as a Go template.
func rendered(data any) func([]byte) ([]byte, error) {
	return func(text []byte) ([]byte, error) {
		t, err := template.New("").Parse(string(text))
		if err != nil {
			return nil, err
		}
		var out bytes.Buffer
		err = t.Execute(&out, data)
		return out.Bytes(), err
	}
}

// client creates and reads objects of any kind in one cluster.
type client struct {
	dynamic.Interface
	config *rest.Config
}

func newClient(kubeconfig string) (*client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.UserAgent = "fleetworkload-lab"
	// CRDs of the module files carry things the API server warns about; that is not ours to repair.
	config.WarningHandler = rest.NoWarnings{}
	d, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &client{Interface: d, config: config}, nil
}

// resource guesses the resource of a kind from its name, which holds for every kind used here and needs no discovery.
func (c *client) resource(gvk schema.GroupVersionKind, namespace string) dynamic.ResourceInterface {
	gvr, _ := meta.UnsafeGuessKindToResource(gvk)
	if namespace == "" {
		return c.Resource(gvr)
	}
	return c.Resource(gvr).Namespace(namespace)
}

// ensure creates the objects that do not exist. Those that do stay as they are: the components change some of them.
func (c *client) ensure(ctx context.Context, objects ...*unstructured.Unstructured) error {
	for _, o := range objects {
		_, err := c.resource(o.GroupVersionKind(), o.GetNamespace()).Create(ctx, o, metav1.CreateOptions{FieldManager: "fleetworkload-lab"})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

func (c *client) ensureMaps(ctx context.Context, objects ...object) error {
	for _, o := range objects {
		if err := c.ensure(ctx, &unstructured.Unstructured{Object: o}); err != nil {
			return err
		}
	}
	return nil
}

func (c *client) get(ctx context.Context, apiVersion, kind, namespace, name string) (*unstructured.Unstructured, error) {
	return c.resource(schema.FromAPIVersionAndKind(apiVersion, kind), namespace).Get(ctx, name, metav1.GetOptions{})
}

// ensureCRDs creates the CRDs and waits until they are served.
func (c *client) ensureCRDs(ctx context.Context, crds []*unstructured.Unstructured) error {
	if err := c.ensure(ctx, crds...); err != nil {
		return err
	}
	for _, crd := range crds {
		err := await(ctx, crdTimeout, func(ctx context.Context) error {
			u, err := c.get(ctx, crd.GetAPIVersion(), crd.GetKind(), "", crd.GetName())
			if err != nil {
				return err
			}
			return conditionTrue(u, "Established")
		})
		if err != nil {
			return fmt.Errorf("CRD %s: %w", crd.GetName(), err)
		}
	}
	return nil
}

// conditionTrue returns an error that describes the condition unless its status is True.
func conditionTrue(u *unstructured.Unstructured, kind string) error {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		condition, ok := c.(object)
		if !ok || condition["type"] != kind {
			continue
		}
		if condition["status"] == "True" {
			return nil
		}
		return fmt.Errorf("%s %s: %s is %v: %v", u.GetKind(), u.GetName(), kind, condition["status"], condition["message"])
	}
	return fmt.Errorf("%s %s has no condition %s", u.GetKind(), u.GetName(), kind)
}

func namespaceObject(name string) object {
	return object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": name}}
}

func base64Of(data []byte) string { return base64.StdEncoding.EncodeToString(data) }
