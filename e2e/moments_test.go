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

	"github.com/fleetworkload/fleetworkload/internal/interpreter"
)

// moments are what workloads pass through between two steps, by the step that leads there.
var moments = map[string][]interpreter.Reason{
	"create": {interpreter.ReasonPending, interpreter.ReasonRunning, interpreter.ReasonFinishing, interpreter.ReasonCreating},
	"update": {interpreter.ReasonNotObserved, interpreter.ReasonUpdating, interpreter.ReasonUnavailable},
	"zero":   {interpreter.ReasonScalingDown},
	"back":   {interpreter.ReasonCreating},
}

// momentRecorder writes fixtures of moments as the first member shows them. Timing decides which ones it sees and with
// which numbers; therefore it keeps those that are there, and one who wants a new one deletes the old one.
type momentRecorder struct {
	dir      string
	registry *interpreter.Registry
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
	var err error
	m.registry, err = interpreter.New()
	Expect(err).NotTo(HaveOccurred())
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
	state, err := m.registry.For(obj.GroupVersionKind()).State(interpreter.ReportOf(obj))
	Expect(err).NotTo(HaveOccurred())
	if !slices.Contains(moments[m.step], state.Reason) {
		return
	}
	path := filepath.Join(m.dir, r.name, m.step+"-"+strings.ToLower(string(state.Reason))+".yaml")
	if _, err := os.Stat(path); os.IsNotExist(err) {
		writeFixture(obj, r.fw.Namespace, path)
	}
}
