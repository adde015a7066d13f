// Package proposal is the form in which somebody asks what a spec would come to: an annotation of the FleetWorkload, with the spec in it.
package proposal

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/config/crd"
	"github.com/fleetworkload/fleetworkload/internal/crdschema"
)

const (
	// MostValue bounds an annotation's value, in bytes: all annotations of an object have 256 KiB (ValidateAnnotationsSize of
	// k8s.io/apimachinery/pkg/api/validation), and others need some.
	MostValue = 192 << 10
	// mostSpec bounds a spec, in bytes of JSON. No API server keeps a larger object: etcd takes 1.5 MiB.
	mostSpec = 1536 << 10
)

// Encode is the annotation's value for a spec. It fails for one that is too large to be asked about this way.
func Encode(spec v1alpha1.FleetWorkloadSpec) (string, error) {
	raw, err := json.Marshal(spec)
	if err != nil {
		return "", fmt.Errorf("encode the spec: %w", err)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err = w.Write(raw)
	if err := errors.Join(err, w.Close()); err != nil {
		return "", fmt.Errorf("compress the spec: %w", err)
	}
	value := base64.StdEncoding.EncodeToString(packed.Bytes())
	if len(value) > MostValue {
		return "", fmt.Errorf("the spec takes %d bytes, compressed, and an annotation has room for %d", len(value), MostValue)
	}
	return value, nil
}

// Hash names a value: who asks knows by it which question is answered.
func Hash(value string) string {
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:])[:16]
}

// Decode is the FleetWorkload as the value proposes it: what it is now, with another spec. Whatever an API server would not admit is an error, so that
// nothing has to be looked at that could not be there.
func Decode(ctx context.Context, fw *v1alpha1.FleetWorkload, value string) (*v1alpha1.FleetWorkload, error) {
	spec, err := unpack(value)
	if err != nil {
		return nil, err
	}
	schemas, err := schemasOnce()
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(fw)
	if err != nil {
		return nil, fmt.Errorf("read the present spec: %w", err)
	}
	asked := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	asked.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("FleetWorkload"))
	asked.SetNamespace(fw.Namespace)
	asked.SetName(fw.Name)
	if asked, err = schemas.AdmitUpdate(ctx, asked, &unstructured.Unstructured{Object: content}); err != nil {
		return nil, fmt.Errorf("the proposed spec: %w", err)
	}
	next := &v1alpha1.FleetWorkload{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(asked.Object, next); err != nil {
		return nil, fmt.Errorf("read the proposed spec: %w", err)
	}
	out := *fw
	out.Spec = next.Spec
	return &out, nil
}

func unpack(value string) (map[string]any, error) {
	r, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(value)))
	if err != nil {
		return nil, fmt.Errorf("it is not what gzip and base64 make of a spec: %w", err)
	}
	raw, err := io.ReadAll(io.LimitReader(r, mostSpec+1))
	if err != nil {
		return nil, fmt.Errorf("it is not what gzip and base64 make of a spec: %w", err)
	}
	if len(raw) > mostSpec {
		return nil, fmt.Errorf("the proposed spec has more than %d bytes", mostSpec)
	}
	var spec map[string]any
	if err := utiljson.Unmarshal(raw, &spec); err != nil {
		return nil, fmt.Errorf("the proposed spec is no JSON object: %w", err)
	}
	return spec, nil
}

// schemasOnce reads the schema when it is needed first: hardly any operator is asked.
var schemasOnce = sync.OnceValues(func() (crdschema.Schemas, error) {
	schemas := crdschema.Schemas{}
	if err := schemas.Read(crd.FleetWorkload); err != nil {
		return nil, fmt.Errorf("read the schema of FleetWorkloads: %w", err)
	}
	return schemas, nil
})
