package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/dynamic"
)

// finding is what one member cluster really has of one workload.
type finding struct {
	workload, cluster, carrier string
	replicas, pods, image      string
	difference                 string
	problems                   []string
}

// prove reads workloads and pods from the member clusters themselves, and compares them with what the samples ask for.
func (d *demo) prove(ctx context.Context, out io.Writer) error {
	var findings []finding
	for _, s := range samples() {
		found, err := d.inspect(ctx, s, carrierOf(s.name))
		if err != nil {
			return err
		}
		findings = append(findings, found...)
	}
	return report(out, findings)
}

// inspect reads one workload from every member cluster.
func (d *demo) inspect(ctx context.Context, s sample, carrier string) ([]finding, error) {
	var findings []finding
	for _, m := range d.fleet.Members() {
		c, _, err := d.client(m.Name)
		if err != nil {
			return nil, err
		}
		f, err := look(ctx, c, s, m.Name, carrier)
		if err != nil {
			return nil, fmt.Errorf("read %s %s/%s on %s: %w", s.kind, namespace, s.name, m.Name, err)
		}
		findings = append(findings, f)
	}
	return findings, nil
}

// report shows what was found. It is an error when something is not as asked.
func report(out io.Writer, findings []finding) error {
	if err := printFindings(out, findings); err != nil {
		return err
	}
	var errs []error
	for _, f := range findings {
		for _, p := range f.problems {
			errs = append(errs, fmt.Errorf("%s on %s: %s", f.workload, f.cluster, p))
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("member clusters do not run what was asked:\n%w", errors.Join(errs...))
	}
	return nil
}

func printFindings(out io.Writer, findings []finding) error {
	w := printers.GetNewTabWriter(out)
	fmt.Fprintln(w, "WORKLOAD\tCLUSTER\tCARRIED BY\tREPLICAS\tREADY PODS\tTHEIR IMAGE\tTHIS CLUSTER'S OWN\tAS ASKED")
	for _, f := range findings {
		verdict := "yes"
		if len(f.problems) > 0 {
			verdict = "NO: " + strings.Join(f.problems, "; ")
		}
		fmt.Fprintln(w, strings.Join([]string{f.workload, f.cluster, f.carrier, f.replicas, f.pods, f.image, f.difference, verdict}, "\t"))
	}
	return w.Flush()
}

// settle is how long a member may lag behind its own pods: readiness reaches the workload's status with a delay, and a
// status that is read meanwhile must not fail the demo.
const settle = 10 * time.Second

// look reads one workload on one member. A cluster that was not chosen must have nothing.
func look(ctx context.Context, c dynamic.Interface, s sample, cluster, carrier string) (finding, error) {
	deadline := time.Now().Add(settle)
	for {
		f, err := lookOnce(ctx, c, s, cluster, carrier)
		if err != nil || len(f.problems) == 0 || time.Now().After(deadline) {
			return f, err
		}
		select {
		case <-ctx.Done():
			return f, context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}

func lookOnce(ctx context.Context, c dynamic.Interface, s sample, cluster, carrier string) (finding, error) {
	wanted, chosen := s.clusters[cluster]
	f := finding{workload: s.kind + " " + s.name, cluster: cluster, carrier: "-", replicas: "-", pods: "-", image: "-", difference: "-"}
	gv, err := schema.ParseGroupVersion(s.group)
	if err != nil {
		return f, err
	}
	obj, err := c.Resource(gv.WithResource(s.resource)).Namespace(namespace).Get(ctx, s.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		if chosen {
			f.problems = append(f.problems, "it is not there")
		} else {
			f.difference = "not chosen, nothing there"
		}
		return f, nil
	case err != nil:
		return f, err
	case !chosen:
		f.problems = append(f.problems, "it is there, but the cluster was not chosen")
		return f, nil
	}
	pods, err := c.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(namespace).
		List(ctx, metav1.ListOptions{LabelSelector: "app=" + s.name})
	if err != nil {
		return f, fmt.Errorf("list its pods: %w", err)
	}
	if f.carrier, err = carrierNow(ctx, c, obj); err != nil {
		return f, err
	}
	f.compare(obj, pods.Items, wanted)
	if f.carrier != carrier {
		f.problems = append(f.problems, "carried by "+f.carrier+", not "+carrier)
	}
	return f, nil
}

// compare fills in what there is, and what of it is not as wanted.
func (f *finding) compare(obj *unstructured.Unstructured, pods []unstructured.Unstructured, wanted want) {
	replicas, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
	f.replicas = fmt.Sprint(replicas)
	if replicas != wanted.replicas {
		f.problems = append(f.problems, fmt.Sprintf("%d replicas, not %d", replicas, wanted.replicas))
	}
	ready := int64(0)
	var images []string
	for _, pod := range pods {
		if podReady(pod) {
			ready++
		}
		if image := container(pod.Object, "spec", "containers")["image"]; !slices.Contains(images, fmt.Sprint(image)) {
			images = append(images, fmt.Sprint(image))
		}
	}
	f.pods = fmt.Sprintf("%d/%d", ready, len(pods))
	if ready != wanted.replicas || int64(len(pods)) != wanted.replicas {
		f.problems = append(f.problems, fmt.Sprintf("%d of %d pods are ready, not %d", ready, len(pods), wanted.replicas))
	}
	if reported, _, _ := unstructured.NestedInt64(obj.Object, "status", "readyReplicas"); reported != wanted.replicas {
		f.problems = append(f.problems, fmt.Sprintf("it reports %d ready replicas, not %d", reported, wanted.replicas))
	}
	f.image = strings.Join(images, ", ")
	if f.image != wanted.image {
		f.problems = append(f.problems, fmt.Sprintf("its pods run %s, not %s", f.image, wanted.image))
	}
	value := differenceOf(obj, pods, wanted.difference)
	if value != "" {
		f.difference = wanted.difference + "=" + value
	}
	if value != wanted.value {
		f.problems = append(f.problems, fmt.Sprintf("%s is %q, not %q", wanted.difference, value, wanted.value))
	}
}

// differenceOf reads a label of the workload, or an environment variable as every pod has it.
func differenceOf(obj *unstructured.Unstructured, pods []unstructured.Unstructured, what string) string {
	if label, is := strings.CutPrefix(what, "label "); is {
		return obj.GetLabels()[label]
	}
	name, _ := strings.CutPrefix(what, "env ")
	var values []string
	for _, pod := range pods {
		env, _ := container(pod.Object, "spec", "containers")["env"].([]any)
		value := "unset"
		for _, e := range env {
			if m, ok := e.(map[string]any); ok && m["name"] == name {
				value = fmt.Sprint(m["value"])
			}
		}
		if !slices.Contains(values, value) {
			values = append(values, value)
		}
	}
	return strings.Join(values, ", ")
}

// carrierOf is the backend that the sample of that name chooses.
func carrierOf(name string) string {
	if strings.HasSuffix(name, "-karmada") {
		return "Karmada"
	}
	return "OCM"
}

// carrierNow tells whose the member object is: Karmada marks what it manages, and OCM's agent keeps a record of what it has
// applied.
func carrierNow(ctx context.Context, c dynamic.Interface, obj *unstructured.Unstructured) (string, error) {
	records, err := c.Resource(schema.GroupVersionResource{
		Group: "work.open-cluster-management.io", Version: "v1", Resource: "appliedmanifestworks",
	}).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("list the records of OCM's agent: %w", err)
	}
	var by []string
	if obj.GetLabels()["karmada.io/managed"] == "true" {
		by = append(by, "Karmada")
	}
	if slices.ContainsFunc(records.Items, func(r unstructured.Unstructured) bool { return hasApplied(r, obj) }) {
		by = append(by, "OCM")
	}
	if len(by) == 0 {
		return "nobody", nil
	}
	return strings.Join(by, " and "), nil
}

// hasApplied tells whether a record of OCM's agent names the object.
func hasApplied(record unstructured.Unstructured, obj *unstructured.Unstructured) bool {
	applied, _, _ := unstructured.NestedSlice(record.Object, "status", "appliedResources")
	return slices.ContainsFunc(applied, func(a any) bool {
		m, ok := a.(map[string]any)
		return ok && m["uid"] == string(obj.GetUID())
	})
}

// container is the first container at the path.
func container(obj map[string]any, path ...string) map[string]any {
	list, _, _ := unstructured.NestedSlice(obj, path...)
	if len(list) == 0 {
		return nil
	}
	first, _ := list[0].(map[string]any)
	return first
}

func podReady(pod unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(pod.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		m, ok := c.(map[string]any)
		return ok && m["type"] == "Ready" && m["status"] == "True"
	})
}
