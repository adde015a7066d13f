//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// moments are what workloads pass through between two steps, by the step that leads there.
var moments = map[string][]string{
	"create": {"running", "finishing", "creating"},
	"update": {"notobserved", "updating", "unavailable"},
	"zero":   {"scalingdown"},
	"back":   {"creating"},
}

// momentOf names what an object passes through, by its plain numbers: what they mean is for the interpreters to say.
func momentOf(obj *unstructured.Unstructured) string {
	number := func(fields ...[]string) int64 {
		for _, at := range fields {
			if n, found, _ := unstructured.NestedInt64(obj.Object, at...); found {
				return n
			}
		}
		return 0
	}
	status := func(names ...string) int64 {
		var fields [][]string
		for _, name := range names {
			fields = append(fields, []string{"status", name})
		}
		return number(fields...)
	}
	if !strings.HasSuffix(obj.GetKind(), "Set") && !strings.HasSuffix(obj.GetKind(), "Deployment") {
		return momentOfJob(obj)
	}
	desired, replicas := number([]string{"status", "desiredNumberScheduled"}, []string{"spec", "replicas"}), status("currentNumberScheduled", "replicas")
	switch {
	case status("observedGeneration") == 0:
		return ""
	case status("observedGeneration") < obj.GetGeneration():
		return "notobserved"
	case status("updatedNumberScheduled", "updatedReplicas") < desired:
		return "updating"
	case replicas < desired:
		return "creating"
	case replicas > desired:
		return "scalingdown"
	case status("numberReady", "readyReplicas") < desired:
		return "unavailable"
	default:
		return ""
	}
}

func momentOfJob(obj *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	phase, hasPhase, _ := unstructured.NestedString(obj.Object, "status", "phase")
	_, started, _ := unstructured.NestedString(obj.Object, "status", "startTime")
	moment := ""
	if strings.EqualFold(phase, "running") || !hasPhase && started {
		moment = "running"
	}
	for _, c := range conditions {
		switch fields, _ := c.(map[string]any); fields["type"] {
		case "Complete", "Failed":
			return ""
		case "SuccessCriteriaMet", "FailureTarget":
			moment = "finishing"
		}
	}
	return moment
}

// momentRecorder writes fixtures of moments as the first member shows them. Timing decides which ones it sees and with
// which numbers; therefore it keeps those that are there, and one who wants a new one deletes the old one.
type momentRecorder struct {
	dir string
	// lived are the lives on the backend that is watched, by kind.
	lived map[schema.GroupVersionKind][]*livedOn

	mu   sync.Mutex
	step string
}

// recordMoments watches the lives until the container ends. It does nothing when no fixtures are asked for.
func recordMoments(lived []*livedOn) *momentRecorder {
	GinkgoHelper()
	m := &momentRecorder{dir: os.Getenv(envFixtures), lived: map[schema.GroupVersionKind][]*livedOn{}}
	if m.dir == "" {
		return m
	}
	for _, r := range lived {
		m.lived[r.gvk()] = append(m.lived[r.gvk()], r)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	DeferCleanup(func() {
		stop()
		running.Wait()
	})
	for gvk, of := range m.lived {
		items := &unstructured.UnstructuredList{}
		items.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		var opts []client.ListOption
		if !of[0].clusterScoped {
			opts = append(opts, client.InNamespace(of[0].fw.Namespace))
		}
		events, err := member(world.members[0]).Watch(ctx, items, opts...)
		Expect(err).NotTo(HaveOccurred())
		running.Go(func() {
			defer GinkgoRecover()
			defer events.Stop()
			for event := range events.ResultChan() {
				if obj, ok := event.Object.(*unstructured.Unstructured); ok {
					m.see(obj)
				}
			}
		})
	}
	return m
}

// during tells the step that begins.
func (m *momentRecorder) during(step string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.step = step
}

func (m *momentRecorder) see(obj *unstructured.Unstructured) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.lived[obj.GroupVersionKind()], func(r *livedOn) bool { return r.memberKey().Name == obj.GetName() })
	if i < 0 {
		return
	}
	r := m.lived[obj.GroupVersionKind()][i]
	if c, takes := r.steps[m.step]; !takes || c.health == progressing {
		return // a step that ends on the way is recorded as it ends
	}
	moment := momentOf(obj)
	if !slices.Contains(moments[m.step], moment) {
		return
	}
	path := filepath.Join(m.dir, r.name, m.step+"-"+moment+".yaml")
	if _, err := os.Stat(path); os.IsNotExist(err) {
		writeFixture(obj, r.fw.Namespace, path)
	}
}
