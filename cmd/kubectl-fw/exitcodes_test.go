package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/hack/docs"
	"github.com/fleetworkload/fleetworkload/internal/config"
)

// claim is what the page says of exit codes, and what shows that it is so.
type claim struct {
	says  string
	tries []try
}

// try is something that ends with a code.
type try struct {
	what string
	code int
	ends func(*testing.T) error
}

// line is a command that is run with a management cluster whose FleetWorkload web is not ready.
func line(code int, args string) try {
	return try{args, code, func(t *testing.T) error {
		t.Helper()
		_, _, err := run(t, "", append([]string{"--kubeconfig", notReady(t)}, strings.Split(args, " ")...)...)
		return err
	}}
}

// notReady is a management cluster with a FleetWorkload web that waits for nobody, and one, waits, whose change waits for approval.
func notReady(t *testing.T) (kubeconfig string) {
	t.Helper()
	fw, versions := shipping(t, replaced("nginx:1.26", "nginx:1.27"))
	waits, none := unapproved(t), unapproved(t)
	waits.Name, none.Name, none.Status.Change = "waits", "none", nil
	objects := []client.Object{}
	for _, fw := range []*v1alpha1.FleetWorkload{fw, waits, none} {
		objects = append(objects, ofKind(v1alpha1.GroupVersion.String(), "FleetWorkload", fw))
	}
	for _, v := range versions {
		objects = append(objects, ofKind("apps/v1", "ControllerRevision", v))
	}
	return managementWith(t, nil, objects...)
}

// leaves are the commands that do something.
func leaves(of *cobra.Command) (all []*cobra.Command) {
	if !of.HasSubCommands() {
		return []*cobra.Command{of}
	}
	for _, sub := range of.Commands() {
		all = append(all, leaves(sub)...)
	}
	return all
}

// mistyped are all commands, each with a flag that there is not.
func mistyped() (all []try) {
	for _, command := range leaves(newRoot("kubectl-fw", genericiooptions.NewTestIOStreamsDiscard())) {
		path := strings.TrimPrefix(command.CommandPath(), "kubectl-fw ")
		all = append(all, line(1, path+" --no-such-flag"))
	}
	return all
}

// awaited is how following the migration of a FleetWorkload to a backend ends.
func awaited(code int, to string, changes ...func(*v1alpha1.FleetWorkload)) try {
	return try{"to " + to, code, func(t *testing.T) error {
		t.Helper()
		c := fakeClient(t, moving(t, changes...))
		a := &awaiting{client: c, key: web, to: to, program: "kubectl fw", picture: pictureOn(io.Discard)}
		return a.run(within(t), c, genericiooptions.NewTestIOStreamsDiscard())
	}}
}

// interrupted is how following one ends after an interrupt.
func interrupted(t *testing.T) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := fakeClient(t, moving(t))
	return (&awaiting{client: c, key: web, to: "ocm", picture: pictureOn(io.Discard)}).run(ctx, c, genericiooptions.NewTestIOStreamsDiscard())
}

// deleted is how following one ends that goes meanwhile.
func deleted(t *testing.T) error {
	t.Helper()
	watching := make(chan struct{}, 10)
	c := interceptor.NewClient(fakeClient(t, moving(t)), interceptor.Funcs{
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
			w, err := c.Watch(ctx, list, opts...)
			watching <- struct{}{}
			return w, err
		},
	})
	go func() {
		<-watching // the fake watch has no replay
		if err := c.Delete(t.Context(), moving(t)); err != nil {
			t.Error(err)
		}
	}()
	return (&awaiting{client: c, key: web, to: "ocm", picture: pictureOn(io.Discard)}).run(within(t), c, genericiooptions.NewTestIOStreamsDiscard())
}

// interruptedWatch is a client whose watch is interrupted as soon as it has begun, and the context of who watches.
func interruptedWatch(t *testing.T) (context.Context, client.WithWatch) {
	t.Helper()
	ctx, cancel := context.WithCancel(within(t))
	return ctx, interceptor.NewClient(fakeClient(t, moving(t)), interceptor.Funcs{
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
			w, err := c.Watch(ctx, list, opts...)
			if err == nil {
				w.Stop()
			}
			cancel()
			return w, err
		},
	})
}

func watchInterrupted(t *testing.T) error {
	t.Helper()
	ctx, c := interruptedWatch(t)
	return follow(ctx, c, web, func(*v1alpha1.FleetWorkload) error { return nil }, io.Discard)
}

func getInterrupted(t *testing.T) error {
	t.Helper()
	ctx, c := interruptedWatch(t)
	o := getting(t, "", getOptions{namespace: "shop", watch: true})
	return o.follow(ctx, c, genericiooptions.NewTestIOStreamsDiscard(), atNoon)
}

func eventsInterrupted(t *testing.T) error {
	t.Helper()
	ctx, c := interruptedWatch(t)
	o := eventsOptions{namespace: "shop", watch: true, print: eventsPrintFlags()}
	return o.follow(ctx, c, func(*corev1.EventList) error { return nil }, io.Discard)
}

// rehearsing is a dry run of a migration.
func rehearsing(code int, to string, changes ...func(*v1alpha1.FleetWorkload)) try {
	return try{"a dry run to " + to, code, func(t *testing.T) error {
		t.Helper()
		_, err := rehearse(t, moving(t, append([]func(*v1alpha1.FleetWorkload){resting}, changes...)...), to)
		return err
	}}
}

// previewed is a plan of an edit.
func previewed(code int, what string, edit func(*v1alpha1.FleetWorkload)) try {
	return try{what, code, func(t *testing.T) error {
		t.Helper()
		was := moving(t, resting)
		inv, err := loadInventory("testdata/migrate/inventory.yaml")
		if err != nil {
			t.Fatal(err)
		}
		from := reporting{inventory: inv, report: carriesOut(revisionOf(t, was, inv), 6, 3, 3)}
		if what != "held" { // nobody remembers then what the clusters were asked for
			was.Status.Placement = recorded(t, was, from)
		}
		p := &preview{was: was, next: was.DeepCopy(), program: "kubectl fw"}
		edit(p.next)
		_, err = printedPlan(p, io.Discard, func(p *preview, r *planResult) (bool, error) { return p.decide(from, r) })
		return err
	}}
}

func choosing(names ...string) func(*v1alpha1.FleetWorkload) {
	return func(fw *v1alpha1.FleetWorkload) { fw.Spec.Placement.Clusters = &v1alpha1.ClusterSelector{Names: names} }
}

// fleetTo is how the migration of a fleet to ocm ends.
func fleetTo(code int, what string, set func(*management, *manyOptions), all ...client.Object) try {
	return try{what, code, func(t *testing.T) error {
		t.Helper()
		m := newManagement(t, all...)
		_, _, err := migrateAll(within(t), t, m, func(o *manyOptions) { set(m, o) })
		return err
	}}
}

// fleetInterrupted is how it ends after an interrupt, when one is under way.
func fleetInterrupted(t *testing.T) error {
	t.Helper()
	ctx, cancel := context.WithCancel(within(t))
	m := newManagement(t, member("shop", "a"))
	m.operator = func(client.ObjectKey) { cancel() }
	_, _, err := migrateAll(ctx, t, m, nil)
	return err
}

// retiring is whether karmada may be switched off.
func retiring(code int, dependents []backends.Dependent, fws ...client.Object) try {
	return try{"retire", code, func(t *testing.T) error {
		t.Helper()
		r := &retirement{name: "karmada", kind: config.TypeKarmada, backend: &retired{dependents: dependents}, management: fakeClient(t, fws...)}
		return r.run(t.Context(), genericiooptions.NewTestIOStreamsDiscard(), retireOptions{output: inFormat("", true)})
	}}
}

// examining is what doctor ends with.
func examining(code int, what string, objects func(*testing.T) []client.Object) try {
	return try{what, code, func(t *testing.T) error {
		t.Helper()
		_, err := examined(t, interceptor.Funcs{}, "", objects(t)...)
		return err
	}}
}

// ofFiles is a command that reads files alone.
func ofFiles(code int, args string) try {
	return try{args, code, func(t *testing.T) error {
		t.Helper()
		_, _, err := run(t, "", strings.Split(args, " ")...)
		return err
	}}
}

// claims are all that docs/kubectl-fw.md says of exit codes, in its order.
func claims() []claim {
	importing := "import --inventory testdata/inventory.yaml "
	nobody := func(*management, *manyOptions) {}
	refuses := func(m *management, o *manyOptions) {
		o.maxFailures = 0
		m.refuses["a"] = []error{apierrors.NewForbidden(v1alpha1.GroupVersion.WithResource("fleetworkloads").GroupResource(), "a", nil)}
	}
	goes := backends.Dependent{Cluster: "m1", Kind: "Secret", Namespace: "shop", Name: "s", Fate: backends.FateRemoved}
	return []claim{
		{"The exit code is 0, or 1 after an error or when there is no such FleetWorkload; that of `plan` is 2 when something would change. It is 0 as well when `get --watch`, " +
			"`status --watch` or `events --watch` is interrupted. That a FleetWorkload is not ready is no error:", slices.Concat([]try{
			line(0, "get"), line(0, "get web"), line(0, "status web"), line(0, "events web"), line(0, "history web"), line(0, "undo web --dry-run"), line(0, "undo web"),
			line(0, "restart web"), line(0, "suspend web"), line(0, "resume web"), line(0, "migrate web --to ocm"), line(0, "approve waits"),
			line(1, "get gone"), line(1, "status gone"), line(1, "status gone --watch"), line(1, "events gone"), line(1, "logs gone"), line(1, "history gone"), line(1, "undo gone"),
			line(1, "restart gone"), line(1, "suspend gone"), line(1, "resume web gone"), line(1, "migrate gone --to ocm"), line(1, "migrate web gone --to ocm"),
			line(1, "approve gone"), line(1, "plan gone"), line(2, "plan waits"),
			line(1, "get gone --watch"), {"get --watch", 0, getInterrupted}, {"status --watch", 0, watchInterrupted}, {"events --watch", 0, eventsInterrupted},
		}, mistyped())},
		{"The exit code is 1 when there are problems.", []try{
			rehearsing(0, "ocm"), rehearsing(1, "small"), rehearsing(1, "nowhere"), rehearsing(0, "karmada"),
		}},
		{"| with the workload on the backend of `--to`, also when it was there before | 0 |", []try{
			awaited(0, "ocm", ended("ocm", v1alpha1.MigrationPhaseCompleted)), awaited(0, "karmada", resting),
		}},
		{"| because it cannot begin: all problems are named, and it begins by itself when they are fixed | 1 |", []try{awaited(1, "ocm", problems("a"))}},
		{"| because a person has to decide: a wave asks for approval, or has failed and gone back | 1 |", []try{
			awaited(1, "ocm", asks), awaited(1, "ocm", inPhase(v1alpha1.MigrationPhaseRolledBack, ""), fails, asks),
		}},
		{"| because somebody reversed it, or gave it up: it says on which backend the workload is | 1 |", []try{
			awaited(1, "ocm", ended("karmada", v1alpha1.MigrationPhaseRolledBack)), awaited(1, "ocm", resting),
		}},
		{"| because the FleetWorkload was deleted | 1 |", []try{{"deleted", 1, deleted}}},
		{"| interrupted: the migration goes on by itself | 1 |", []try{{"interrupted", 1, interrupted}}},
		{"| with all on the backend that are not deleted | 0 |", []try{fleetTo(0, "all", nobody, member("shop", "a"), member("shop", "b", arrivedThere))}},
		{"| with `--wait=false`, when all have begun and none has failed | 0 |", []try{
			fleetTo(0, "begun", func(m *management, o *manyOptions) {
				o.leaveAfterTheLastOne, m.becomes["a"] = true, []func(*v1alpha1.FleetWorkload){onItsWay}
			}, member("shop", "a")),
		}},
		{"| with some that wait for a person, have failed, or were skipped | 1 |", []try{
			fleetTo(1, "waits", func(m *management, _ *manyOptions) {
				m.becomes["a"] = []func(*v1alpha1.FleetWorkload){waitsForApproval}
			}, member("shop", "a")),
			fleetTo(1, "failed", func(m *management, _ *manyOptions) { m.becomes["a"] = []func(*v1alpha1.FleetWorkload){notPossible} }, member("shop", "a")),
			fleetTo(1, "skipped", nobody, member("shop", "a", suspendedNow)),
		}},
		{"| because more have failed than may; what was under way has ended by then | 1 |", []try{fleetTo(1, "stopped", refuses, member("shop", "a"), member("shop", "b"))}},
		{"| interrupted: what is under way goes on by itself | 1 |", []try{{"interrupted", 1, fleetInterrupted}}},
		{"When nothing waits it says so, with exit code 1:", []try{line(1, "approve web")}},
		{"The exit code is 2 when a change waits, and 0 when none does. `plan NAME --approve` approves just what it prints, with exit code 0:", []try{
			line(2, "plan waits"), line(0, "plan none"), line(0, "plan waits --approve"),
		}},
		{"The exit codes are those of `plan`, not those of kubectl's diff.", []try{line(2, "diff waits"), line(0, "diff none"), line(1, "diff gone")}},
		{"The exit code is 0 when nothing would change, 2 when something would, and 1 after an error, or when the operator would refuse or hold the change:", []try{
			previewed(0, "the same", func(*v1alpha1.FleetWorkload) {}),
			previewed(2, "an image", func(fw *v1alpha1.FleetWorkload) {
				fw.Spec.Template.Raw = bytes.ReplaceAll(fw.Spec.Template.Raw, []byte("nginx:1.27"), []byte("nginx:1.28"))
			}),
			previewed(1, "refused", choosing("member1", "membr2")), previewed(1, "held", choosing("member1", "member2")), line(1, "plan -f none.yaml --config none.yaml"),
		}},
		{"Unknown fields, clusters, backends and kinds are refused with the operator's words and exit code 1.", []try{
			ofFiles(0, "render -f ../../config/samples/deployment-karmada.yaml --inventory testdata/inventory.yaml"),
			ofFiles(1, "render -f ../../config/samples/deployment-karmada.yaml --inventory testdata/inventory.yaml --backend nowhere"),
		}},
		{"The exit code is 1, and no FleetWorkload is printed, when something cannot be said, when the operator would refuse it, when a cluster would change, or when what " +
			"runs was not given. With `--accept-differences` it is printed with exit code 0,", []try{
			ofFiles(0, importing+"--from karmada -f "+importFixtures+"karmada.yaml"),
			ofFiles(1, importing+"--from ocm -f "+importerFixtures+"ocm-replicaset.yaml"), ofFiles(1, importing+"--from karmada -f "+importerFixtures+"karmada-changes.yaml"),
			ofFiles(1, importing+"--from karmada --member gone="+importFixtures+"member1.yaml"),
			ofFiles(0, importing+"--accept-differences --from karmada -f "+importerFixtures+"karmada-changes.yaml"),
			{"what runs was not given", 1, func(t *testing.T) error {
				t.Helper()
				_, _, err := run(t, "", append(strings.Fields(importing), "--from", "karmada", "-f", withoutWorks(t))...)
				return err
			}},
		}},
		{"The exit code is 0 when the backend may be switched off, and 1 when not.", []try{
			retiring(0, nil), retiring(1, []backends.Dependent{goes}), retiring(1, nil, on("there", "karmada", "karmada", nil)),
		}},
		{"The exit code is 0 when all objects were understood, in whatever health they are. Otherwise it is 1,", []try{
			ofFiles(0, "interpret -f testdata/interpret/job-failed.yaml"), ofFiles(1, "interpret -f testdata/interpret/malformed.yaml"),
		}},
		{"The exit code is 1 when there is a problem.", []try{
			examining(0, "well", func(t *testing.T) []client.Object {
				t.Helper()
				return []client.Object{crdOf(t), leaseHeld("pod-1", noon.Add(-3*time.Second)), webhookWith(authority(t, noon.Add(365*24*time.Hour))), endpoints(true)}
			}),
			examining(1, "nothing is installed", func(*testing.T) []client.Object { return nil }),
		}},
	}
}

// TestExitCodes tries all that the page says of exit codes. What it says of them and is not tried here is an error, too.
func TestExitCodes(t *testing.T) {
	pages, err := docs.Read("../..")
	if err != nil {
		t.Fatal(err)
	}
	page := pages[slices.IndexFunc(pages, func(p docs.Page) bool { return p.Path == "docs/kubectl-fw.md" })]
	const head = "| It ends | Exit code |"
	prose := strings.ReplaceAll(strings.Join(strings.Fields(page.Prose), " "), head, "")
	mentions := regexp.MustCompile(`(?i)exit codes?\b|\| [0-9] \|`)
	left := len(mentions.FindAllString(prose, -1))
	for _, c := range claims() {
		if strings.Count(prose, c.says) != 1 {
			t.Errorf("the page does not say once: %s", c.says)
		}
		left -= len(mentions.FindAllString(c.says, -1))
		for _, try := range c.tries {
			t.Run(try.what, func(t *testing.T) {
				var told bytes.Buffer
				err := try.ends(t)
				if code := exitCodeAfter(err, &told); code != try.code {
					t.Errorf("%q: the exit code is %d, want %d: %v", c.says, code, try.code, err)
				}
				if silent := told.Len() == 0; silent != (try.code != 1) {
					t.Errorf("%q: with exit code %d it says %q", c.says, try.code, told.String())
				}
			})
		}
	}
	if left != 0 {
		t.Errorf("the page speaks %d times more of exit codes than is tried", left)
	}
}

// TestExitCodeOfTheProgram: the process ends with them.
func TestExitCodeOfTheProgram(t *testing.T) {
	folder, kubeconfig := programs(t), notReady(t)
	for args, want := range map[string]struct {
		code int
		says string
	}{
		"get":         {0, ""},
		"plan waits":  {2, ""},
		"status gone": {1, `error: FleetWorkload "gone" not found in namespace "shop"`},
	} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(folder, "kubectl-fw"), strings.Split(args, " ")...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
		var errOut bytes.Buffer
		cmd.Stderr = &errOut
		err := cmd.Run()
		var ended *exec.ExitError
		if err != nil && !errors.As(err, &ended) {
			t.Fatal(err)
		}
		if code := cmd.ProcessState.ExitCode(); code != want.code || !strings.HasPrefix(errOut.String(), want.says) || want.says == "" && errOut.Len() > 0 {
			t.Errorf("%s: exit code %d, standard error %q", args, code, errOut.String())
		}
	}
}
