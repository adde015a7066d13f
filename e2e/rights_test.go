//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
	"github.com/fleetworkload/fleetworkload/e2e/rights"
)

const (
	// envWithout names rights that the operator does not have, with commas between, to see what fails then.
	envWithout = "E2E_WITHOUT"
	// envUses names the file that takes which scenario needed which rights.
	envUses = "E2E_USES"
)

// uses are the rights that the operators of this process have used, by scenario.
type uses struct {
	mu  sync.Mutex
	all map[string]*use
}

type use struct {
	seconds float64
	rights  map[rights.Right]bool
}

var used = &uses{all: map[string]*use{}}

// scenario is what must be run for a spec: the container that its ordered one is in, or itself.
func scenario(spec SpecReport) string {
	if spec.IsInOrderedContainer {
		return spec.ContainerHierarchyTexts[0]
	}
	return spec.FullText()
}

func (u *uses) in(scenario string) *use {
	if u.all[scenario] == nil {
		u.all[scenario] = &use{rights: map[rights.Right]bool{}}
	}
	return u.all[scenario]
}

var _ = ReportAfterEach(func(spec SpecReport) {
	used.mu.Lock()
	defer used.mu.Unlock()
	used.in(scenario(spec)).seconds += spec.RunTime.Seconds()
})

// of notes what a server has granted.
func (u *uses) of(server string) func(method string, at *url.URL, status int) {
	resolver := request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	return func(method string, at *url.URL, status int) {
		info, err := resolver.NewRequestInfo(&http.Request{Method: method, URL: at})
		refused := status == http.StatusUnauthorized || status == http.StatusForbidden || status >= http.StatusInternalServerError
		if err != nil || !info.IsResourceRequest || refused {
			return // what is not found was looked for by right
		}
		r := rights.Right{Server: server, Group: info.APIGroup, Resource: info.Resource, Verb: info.Verb, Own: info.Namespace == operatorNamespace}
		if info.Subresource != "" {
			r.Resource += "/" + info.Subresource
		}
		now := scenario(CurrentSpecReport())
		u.mu.Lock()
		defer u.mu.Unlock()
		here := u.in(now).rights
		here[r] = true
		if info.Verb == "patch" && status == http.StatusCreated {
			r.Verb = "create" // server-side apply of what was not there takes both
			here[r] = true
		}
	}
}

// save leaves what this process has seen for the one that checks.
func (u *uses) save(dir string) {
	GinkgoHelper()
	u.mu.Lock()
	defer u.mu.Unlock()
	var all []rights.Use
	for scenario, use := range u.all {
		one := rights.Use{Scenario: scenario, Seconds: use.seconds}
		for r := range use.rights {
			one.Rights = append(one.Rights, r)
		}
		all = append(all, one)
	}
	raw, err := json.Marshal(all)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(filepath.Join(dir, fmt.Sprintf("rights-%d.json", GinkgoParallelProcess())), raw, 0o600)).To(Succeed())
}

// usesOf are what the processes have left.
func usesOf(dir string) (all []rights.Use) {
	GinkgoHelper()
	saved, err := filepath.Glob(filepath.Join(dir, "rights-*.json"))
	Expect(err).NotTo(HaveOccurred())
	for _, file := range saved {
		raw, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		var some []rights.Use
		Expect(json.Unmarshal(raw, &some)).To(Succeed())
		all = append(all, some...)
	}
	slices.SortFunc(all, func(a, b rights.Use) int { return cmp.Compare(a.Scenario, b.Scenario) })
	return all
}

// allAreUsed wants every right of the roles to be used by the scenarios, of all processes, or to have its reason: one that nobody would miss is not
// given. It leaves who used which for `make rights`.
func allAreUsed(dir string) {
	GinkgoHelper()
	all := usesOf(dir)
	if path := os.Getenv(envUses); path != "" {
		raw, err := json.MarshalIndent(all, "", " ")
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(path, raw, 0o600)).To(Succeed())
	}
	seen := map[rights.Right]bool{}
	for _, use := range all {
		for _, r := range use.Rights {
			rights.Takes(r, func(right rights.Right) { seen[right] = true })
		}
	}
	roles, err := rights.Roles(world.config)
	Expect(err).NotTo(HaveOccurred())
	var unused []string
	for _, role := range roles {
		for _, r := range role.Rights() {
			if !seen[r.Alike()] && rights.Unused[r.String()] == "" {
				unused = append(unused, r.String())
			}
		}
	}
	Expect(unused).To(BeEmpty(), "what the operator may do and no scenario does")
}

// withhold takes the rights that envWithout names off the operator's roles, and give gives them back.
func (e *environment) withhold(ctx context.Context) {
	GinkgoHelper()
	if without := os.Getenv(envWithout); without != "" {
		e.takeRight(ctx, strings.Split(without, ",")...)
	}
}

func (e *environment) give(ctx context.Context) {
	GinkgoHelper()
	if os.Getenv(envWithout) != "" {
		e.takeRight(ctx)
	}
}

// takeRight leaves the operator's roles as config/ has them, without some rights.
func (e *environment) takeRight(ctx context.Context, without ...string) {
	GinkgoHelper()
	roles, err := rights.Roles(e.config)
	Expect(err).NotTo(HaveOccurred())
	taken := 0
	for _, role := range roles {
		for _, right := range role.Rights() {
			if slices.Contains(without, right.String()) {
				role, err = role.Without(right)
				Expect(err).NotTo(HaveOccurred())
				taken++
			}
		}
		raw, err := role.Manifest()
		Expect(err).NotTo(HaveOccurred())
		at := lab.Hub
		if role.Server == "karmada" {
			at = lab.Karmada
		}
		_, err = e.kubectlWith(ctx, string(raw), at, "apply", "--server-side", "--force-conflicts", "-f", "-")
		Expect(err).NotTo(HaveOccurred())
	}
	Expect(taken).To(BeNumerically(">=", len(without)), "there is no right %q", without)
}

// Laws 4 and 10: a cache that may not watch shows what it had.
var _ = Describe("A right to list and watch that the operator lacks", Label("laws", "law4", "law10", "karmada", "ocm"), func() {
	of := map[string]struct {
		rights []string
		named  string
	}{
		"ocm": {
			[]string{"list ocm manifestworks.work.open-cluster-management.io", "watch ocm manifestworks.work.open-cluster-management.io"},
			"watch manifestworks.work.open-cluster-management.io", // the list would have come by the watch
		},
		"karmada": {[]string{"watch karmada works.work.karmada.io"}, "watch works.work.karmada.io"},
	}
	for _, backend := range backends {
		lacks := of[backend]
		It("is named, costs no pod, and is missed no longer once it is given, on "+backend, Label(backend), func(ctx SpecContext) {
			o, namespace := ownOperator(ctx, "watch", operatorOptions{})
			o.start(ctx)
			fw := create(ctx, workload(namespace, "web", backend, cloneSet, 3))
			becomesReady(ctx, fw)
			pods := podUIDs(ctx, fw)
			o.stop(ctx)
			DeferCleanup(func(ctx SpecContext) { world.takeRight(ctx) })
			world.takeRight(ctx, lacks.rights...)
			o.start(ctx)
			eventually(ctx, fw, readyTimeout, func(g Gomega) {
				ready := condition(fw, v1alpha1.ConditionReady)
				g.Expect(ready.Reason).To(Equal(v1alpha1.ReasonBackendForbidden))
				g.Expect(ready.Message).To(And(ContainSubstring(lacks.named), ContainSubstring("grant the operator's user this right")))
			})
			world.takeRight(ctx)
			becomesReady(ctx, fw)
			Expect(podUIDs(ctx, fw)).To(Equal(pods))
		})
	}
})

// What management clusters refuse is dependencies' and the installation's.
var _ = Describe("A right to watch that the management cluster does not give", Label("laws", "law4", "law10"), func() {
	It("is named by FleetWorkloads that need it, and missed no longer once it is given", func(ctx SpecContext) {
		o, namespace := ownOperator(ctx, "watch", operatorOptions{})
		settings := configMap(namespace, "settings", "one")
		Expect(hub().Create(ctx, settings)).To(Succeed())
		fw := workload(namespace, "web", "ocm", cloneSet, 1)
		fw.Spec.Placement.Clusters = on(world.members[0])
		fw.Spec.Dependencies = v1alpha1.DependencyPolicyPropagate
		podSpec(fw, func(spec map[string]any) {
			spec["containers"].([]any)[0].(map[string]any)["envFrom"] = []any{map[string]any{"configMapRef": map[string]any{"name": "settings"}}}
		})
		DeferCleanup(func(ctx SpecContext) { world.takeRight(ctx) })
		world.takeRight(ctx, "watch management configmaps")
		o.start(ctx)
		create(ctx, fw)
		Expect(becomesStalled(ctx, fw, v1alpha1.ReasonDependencyForbidden)).To(ContainSubstring("grant it get, list and watch on configmaps"))
		world.takeRight(ctx)
		becomesReady(ctx, fw)
	})

	It("leaves an operator that cannot see what it serves unready", func(ctx SpecContext) {
		o, _ := ownOperator(ctx, "unready", operatorOptions{})
		DeferCleanup(func(ctx SpecContext) { world.takeRight(ctx) })
		world.takeRight(ctx, "watch management fleetworkloads.apps.fleetworkload.io")
		o.launch()
		Eventually(ctx, o.lacksRights).WithTimeout(time.Minute).Should(MatchError(ContainSubstring("watch fleetworkloads.apps.fleetworkload.io")))
		world.takeRight(ctx)
		Eventually(ctx, o.lacksRights).WithTimeout(time.Minute).Should(Succeed())
	})
})
