//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/fleetworkload/fleetworkload/e2e/lab"
	"github.com/fleetworkload/fleetworkload/hack/docs"
)

// walk is how a page is followed.
type walk struct {
	page string
	// standIns are all commands of the page that a test fleet cannot run, and parts of files, by their first line.
	standIns map[string]standIn
	// ends are exit codes other than 0, and other than 1 where the page shows an error.
	ends map[string]int
	// before is what a page says in prose, by the command before which it is done.
	before map[string]func(ctx context.Context)
	// sooner is written in place of long times in files.
	sooner map[string]string
	// parts is why parts of files that standIns do not list are left out.
	parts string
}

// standIn is why a command of a page is not typed, and what is done in its place.
type standIn struct {
	why string
	do  func(ctx context.Context)
}

// but has these stand-ins, too.
func (w walk) but(others map[string]standIn) walk {
	w.standIns = maps.Clone(w.standIns)
	maps.Copy(w.standIns, others)
	return w
}

// because has one reason for several commands.
func because(why string, commands ...string) map[string]standIn {
	listed := map[string]standIn{}
	for _, command := range commands {
		listed[command] = standIn{why: why}
	}
	return listed
}

// newcomer follows a page in a copy of the checkout.
type newcomer struct {
	dir string
	env []string
	// written are the contents that files have had, said what commands have printed, each time.
	written, said map[string][]string
	// wrong are the outputs and files that the page shows otherwise.
	wrong    []string
	operator *operator
}

// newNewcomer has the management cluster as the current context, a context for each member, and kubectl on the PATH.
func newNewcomer() *newcomer {
	GinkgoHelper()
	home, err := os.MkdirTemp(world.dir, "newcomer-")
	Expect(err).NotTo(HaveOccurred())
	n := &newcomer{dir: filepath.Join(home, "fleetworkload"), written: map[string][]string{}, said: map[string][]string{}}
	tools, session, kubeconfig := filepath.Join(home, "tools"), filepath.Join(home, "session"), filepath.Join(home, "kubeconfig")
	Expect(os.Mkdir(tools, 0o755)).To(Succeed())
	Expect(os.Symlink(world.fleet.Kubectl(), filepath.Join(tools, "kubectl"))).To(Succeed())
	Expect(os.WriteFile(session, nil, 0o600)).To(Succeed())
	Expect(clientcmd.WriteToFile(contexts(append([]string{lab.Hub}, world.members...)...), kubeconfig)).To(Succeed())
	n.env = append(os.Environ(), "PATH="+tools+string(filepath.ListSeparator)+os.Getenv("PATH"), "KUBECONFIG="+kubeconfig, "SESSION="+session)
	return n
}

// contexts is a kubeconfig with a context for each cluster, of its name; the first one is the current.
func contexts(names ...string) clientcmdapi.Config {
	GinkgoHelper()
	all := clientcmdapi.NewConfig()
	for _, name := range names {
		one, err := clientcmd.LoadFromFile(world.fleet.Kubeconfig(name))
		Expect(err).NotTo(HaveOccurred())
		current := one.Contexts[one.CurrentContext]
		all.Clusters[name], all.AuthInfos[name] = one.Clusters[current.Cluster], one.AuthInfos[current.AuthInfo]
		all.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	all.CurrentContext = names[0]
	return *all
}

// follow does what a page says, step by step. Each command is typed, or one of standIns; and each of these is on the page.
func (n *newcomer) follow(ctx context.Context, w walk) {
	GinkgoHelper()
	steps := stepsOf(w.page)
	for _, listed := range slices.Concat(slices.Collect(maps.Keys(w.standIns)), slices.Collect(maps.Keys(w.ends)), slices.Collect(maps.Keys(w.before))) {
		Expect(slices.ContainsFunc(steps, func(s docs.Step) bool { return entry(s) == listed })).To(BeTrue(), "%s does not have %q any more", w.page, listed)
	}
	for _, step := range steps {
		instead, isListed := w.standIns[entry(step)]
		if do := w.before[step.Text]; do != nil {
			do(ctx)
		}
		switch {
		case step.File != "" && step.Shown != "":
			n.has(step)
		case step.File != "":
			n.write(step.File, w.shortened(step.Text))
		case isListed && instead.do != nil:
			By(step.Where + ": instead of " + entry(step) + ", since " + instead.why)
			instead.do(ctx)
			w.standIns[entry(step)] = standIn{why: instead.why} // it is done once
		case isListed, step.Part && w.parts != "":
		case step.Part:
			Fail(step.Where + ": nobody knows what to do with this part of a file")
		default:
			By(step.Where + ": " + step.Text)
			n.types(ctx, step, w.exit(step))
		}
	}
	Expect(w.sooner).To(BeEmpty(), "times that no file of %s has any more", w.page)
	if len(n.wrong) > 0 {
		Fail("outputs and files are not as the page shows them; what is another each time is alike in both:\n" + strings.Join(n.wrong, "\n"))
	}
}

// entry is by what a step is listed.
func entry(s docs.Step) string {
	if s.Part {
		first, _, _ := strings.Cut(s.Text, "\n")
		return first
	}
	return s.Text
}

// exit is the code that a command is to end with.
func (w walk) exit(step docs.Step) int {
	if announced, is := w.ends[step.Text]; is {
		return announced
	}
	if shown := "\n" + step.Shown; strings.Contains(shown, "\nerror: ") || strings.Contains(shown, "\nError from server ") {
		return 1
	}
	return 0
}

// shortened has the times of a file that is written, and forgets them.
func (w walk) shortened(text string) string {
	for long, short := range w.sooner {
		if strings.Contains(text, long) {
			text = strings.ReplaceAll(text, long, short)
			delete(w.sooner, long)
		}
	}
	return text
}

func stepsOf(path string) []docs.Step {
	GinkgoHelper()
	steps, err := pageAt(path).Steps()
	Expect(err).NotTo(HaveOccurred())
	return steps
}

func pageAt(path string) docs.Page {
	GinkgoHelper()
	pages, err := docs.Read("..")
	Expect(err).NotTo(HaveOccurred())
	at := slices.IndexFunc(pages, func(p docs.Page) bool { return p.Path == path })
	Expect(at).To(BeNumerically(">=", 0), "there is no page %s", path)
	return pages[at]
}

// isOnPage wants what was printed to be what a block of a page shows, which has this first line.
func isOnPage(path, first, printed string) {
	GinkgoHelper()
	blocks := pageAt(path).Blocks
	at := slices.IndexFunc(blocks, func(b docs.Block) bool { return strings.HasPrefix(b.Text, first+"\n") })
	Expect(at).To(BeNumerically(">=", 0), "%s has no block that begins %q", path, first)
	shown, now := docs.Alike(blocks[at].Text), docs.Alike(printed)
	Expect(docs.Like(shown).MatchString(now)).To(BeTrue(), "%s shows:\n%s\nand now it is:\n%s", blocks[at].Where, shown, now)
}

func (n *newcomer) write(name, content string) {
	GinkgoHelper()
	n.written[name] = append(n.written[name], content)
	Expect(os.WriteFile(filepath.Join(n.dir, name), []byte(content), 0o600)).To(Succeed())
}

// has wants a file to have what the page shows of it.
func (n *newcomer) has(step docs.Step) {
	GinkgoHelper()
	raw, err := os.ReadFile(filepath.Join(n.dir, step.File))
	Expect(err).NotTo(HaveOccurred(), step.Where)
	shown, now := normalized(step.Shown, step.LeftOut), normalized(string(raw), step.LeftOut)
	if shown != now {
		n.wrong = append(n.wrong, fmt.Sprintf("%s: %s\nthe page:\n%snow:\n%s", step.Where, step.File, shown, now))
	}
}

// normalized is a YAML object in the one way in which it is printed, without a field.
func normalized(text, without string) string {
	GinkgoHelper()
	var content map[string]any
	Expect(yaml.Unmarshal([]byte(text), &content)).To(Succeed())
	if without != "" {
		unstructured.RemoveNestedField(content, strings.Split(without, ".")...)
	}
	raw, err := yaml.Marshal(content)
	Expect(err).NotTo(HaveOccurred())
	return string(raw)
}

// types runs a command in a shell with what those before it have exported, and wants the exit code, and the output that the page shows.
func (n *newcomer) types(ctx context.Context, step docs.Step, ends int) {
	GinkgoHelper()
	script := ". \"$SESSION\"\n" + step.Text + "\ncode=$?\nexport -p >\"$SESSION\"\nexit $code\n"
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir, cmd.Env = n.dir, n.env
	out, err := cmd.CombinedOutput()
	said := string(out)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		Expect(err).NotTo(HaveOccurred(), step.Where)
	}
	AddReportEntry(step.Where+": "+step.Text, ReportEntryVisibilityFailureOrVerbose, said)
	Expect(cmd.ProcessState.ExitCode()).To(Equal(ends), "the exit code of what %s has people type, which printed:\n%s", step.Where, said)
	n.said[step.Text] = append(n.said[step.Text], said)
	shown, now := docs.Alike(step.Shown), docs.Alike(said)
	if shown != "" && !docs.Like(shown).MatchString(now) {
		n.wrong = append(n.wrong, fmt.Sprintf("%s: %s\nthe page:\n%snow:\n%s", step.Where, step.Text, shown, now))
	}
}

// copyCheckout takes what a commit would have, so that nothing is written into the checkout. What make build makes is in one folder for all, so that
// only the first one to type it waits for it.
func (n *newcomer) copyCheckout(ctx context.Context) {
	GinkgoHelper()
	Expect(os.Mkdir(n.dir, 0o755)).To(Succeed())
	cmd := exec.CommandContext(ctx, "bash", "-c", `set -o pipefail; git ls-files -z --cached --others --exclude-standard | tar -c --null -T - | tar -x -C "$0"`, n.dir)
	cmd.Dir = ".."
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "copy the checkout: %s", out)
	programs := filepath.Join(world.dir, "bin")
	Expect(os.MkdirAll(programs, 0o755)).To(Succeed())
	Expect(os.Symlink(programs, filepath.Join(n.dir, "bin"))).To(Succeed())
	admin, err := os.ReadFile(world.fleet.Kubeconfig(lab.Karmada))
	Expect(err).NotTo(HaveOccurred())
	n.write("karmada-admin.kubeconfig", string(admin))
}
