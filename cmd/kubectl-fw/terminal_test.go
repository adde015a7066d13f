package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/config"
)

const (
	terminalColumns = 80
	terminalRows    = 24
)

// onTerminal is what a program writes to a terminal of 80 columns and 24 lines, as the terminal gets it.
func onTerminal(t *testing.T, program func(*os.File)) string {
	t.Helper()
	t.Setenv("TERM", "xterm")
	screen, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(screen, &pty.Winsize{Rows: terminalRows, Cols: terminalColumns}); err != nil {
		t.Fatal(err)
	}
	const end = '\x00' // Linux may lose what is unread when a terminal is closed
	written := make(chan string)
	go func() {
		defer close(written)
		text, err := bufio.NewReader(screen).ReadString(end)
		if err != nil {
			t.Errorf("read what the terminal shows: %v", err)
		}
		written <- strings.TrimSuffix(text, string(end))
	}()
	program(terminal)
	if _, err := terminal.WriteString(string(end)); err != nil {
		t.Error(err)
	}
	text := <-written
	if err := errors.Join(terminal.Close(), screen.Close()); err != nil {
		t.Error(err)
	}
	return text
}

// talkative is a management cluster whose FleetWorkloads have long names, many clusters, and much to say.
func talkative(t *testing.T) (kubeconfig string) {
	t.Helper()
	long := strings.Repeat("nothing that is short ", 12)
	fw, versions := shipping(t, withCompanions(keys("YQ=="), `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a-service-with-a-rather-long-name"}}`),
		withOverrides("1.28", "1.29"), withOverrides("1.30", "1.31"))
	setCondition(fw, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonClusterNotFound, long)
	setCondition(fw, v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonClusterNotFound, long)
	fw.Status.Clusters, fw.Status.Truncated = clustersSaying(long, 40), new(int32)
	*fw.Status.Truncated = 7
	fw.Status.Backend = "ocm"
	objects := []client.Object{ofKind(v1alpha1.GroupVersion.String(), "FleetWorkload", fw)}
	for _, v := range versions {
		objects = append(objects, ofKind("apps/v1", "ControllerRevision", v))
	}
	waits := unapproved(t, companionsChange, func(fw *v1alpha1.FleetWorkload) {
		fw.Namespace = "data"
		fw.Status.Change.Message, fw.Status.Change.Companions[0].Name = long, strings.Repeat("long-name-", 9)
		for i := range 40 {
			fw.Status.Change.Clusters = append(fw.Status.Change.Clusters, v1alpha1.PlannedCluster{
				Name: fmt.Sprintf("%s%d", strings.Repeat("long-name-", 9), i), Action: v1alpha1.PlannedRemove, Reason: v1alpha1.RemovalSpecChanged,
			})
		}
	})
	happens := happened("shop", "web", "1", "Ready", 0, func(e *corev1.Event) { e.Message = long })
	elsewhere := happened("data", strings.Repeat("long-name-", 9), "2", "Ready", time.Hour, func(e *corev1.Event) { e.Message = long })
	return managementWith(t, nil, append(objects, servedFleetWorkload("shop", strings.Repeat("long-name-", 9), func(*v1alpha1.FleetWorkload) {}),
		ofKind(v1alpha1.GroupVersion.String(), "FleetWorkload", waits), ofKind("v1", "Event", happens), ofKind("v1", "Event", elsewhere))...)
}

func clustersSaying(message string, n int) (all []v1alpha1.ClusterStatus) {
	for i := range n {
		all = append(all, v1alpha1.ClusterStatus{Name: fmt.Sprintf("member%d", i), Stale: metav1.ConditionTrue, Message: message})
	}
	return all
}

// TestTerminalOf80Columns: no line is longer than the terminal is wide, and what is too long ends with a sign for that. Elsewhere lines are whole.
func TestTerminalOf80Columns(t *testing.T) {
	kubeconfig := talkative(t)
	for line, want := range map[string]struct {
		edge bool
		says string // in one line
	}{
		"get":                      {true, "NAME               KIND         BACKEND         READY   CLUSTERS   STATUS"},
		"get -A":                   {true, "shop        long-na…ng-name-   Deployment   ocm             4/4"},
		"get web":                  {true, "FleetWorkload web"},
		"status web":               {true, "CLUSTER    READY   UPDATED   STATUS   AGE   MESSAGE"},
		"history web":              {true, "REVISION   PRESENT   AGE"},
		"history web --revision 2": {true, "  companion Service/a-service-with-a-rather-long-name: added"},
		"events web":               {true, "LAST SEEN"},
		"events -A":                {true, "NAMESPACE   LAST SEEN"},
		"plan web -n data":         {true, "CLUSTER"},
		"events web -o wide":       {false, "nothing that is short nothing"},
		"plan web -n data -o wide": {false, "nothing that is short nothing"},
		"get -o wide":              {false, "nothing that is short nothing"},
		"status web -o wide":       {false, "nothing that is short nothing"},
		"history web -o wide":      {false, "o1: images[0].tag 1.29 -> 1.31"},
		"status web -o json":       {false, "nothing that is short nothing"},
	} {
		t.Run(line, func(t *testing.T) {
			var err error
			text := onTerminal(t, func(terminal *os.File) {
				root := newRoot("kubectl-fw", genericiooptions.IOStreams{In: os.Stdin, Out: terminal, ErrOut: io.Discard})
				root.SetArgs(append([]string{"--kubeconfig", kubeconfig}, strings.Split(line, " ")...))
				err = root.ExecuteContext(t.Context())
			})
			if err != nil && !errors.Is(err, somethingChanges) || !strings.Contains(text, want.says) {
				t.Fatalf("error %v, and not %q:\n%s", err, want.says, text)
			}
			longest := 0
			for _, line := range strings.Split(text, "\r\n") {
				longest = max(longest, utf8.RuneCountInString(line))
			}
			if edge := longest <= terminalColumns; edge != want.edge {
				t.Errorf("the longest line has %d columns:\n%s", longest, text)
			}
			piped, _, err := run(t, "", append([]string{"--kubeconfig", kubeconfig}, strings.Split(line, " ")...)...)
			if err != nil && !errors.Is(err, somethingChanges) || strings.Count(piped, "\n") > strings.Count(text, "\n") {
				t.Errorf("error %v, and more lines in a file than on a terminal:\n%s", err, piped)
			}
		})
	}
	piped, _, err := run(t, "", "--kubeconfig", kubeconfig, "status", "web")
	if err != nil || !strings.Contains(piped, strings.TrimSpace(strings.Repeat("nothing that is short ", 12))+"\n") {
		t.Errorf("error %v, a line of a file is not whole:\n%s", err, piped)
	}
}

// drawn is a screen of 24 lines after a program has written: what is on it, and what has left it at the top.
type drawn struct {
	lines []string
	row   int
	gone  []string
}

// take does what a terminal does with the few signs that a picture is drawn by.
func (d *drawn) take(t *testing.T, text string) {
	t.Helper()
	for len(text) > 0 {
		var sequence string
		switch {
		case strings.HasPrefix(text, "\x1b["):
			end := strings.IndexAny(text, "AJhl") + 1
			sequence, text = text[:end], text[end:]
			d.obey(t, sequence)
		case text[0] == '\r':
			text = text[1:]
		case text[0] == '\n':
			text = text[1:]
			if d.row++; d.row == terminalRows {
				d.gone, d.lines, d.row = append(d.gone, d.lines[0]), append(d.lines[1:], ""), d.row-1
			}
		default:
			end := strings.IndexAny(text, "\x1b\r\n")
			d.lines[d.row] += text[:end]
			text = text[end:]
		}
	}
}

func (d *drawn) obey(t *testing.T, sequence string) {
	t.Helper()
	switch {
	case sequence == "\x1b[?7l" || sequence == "\x1b[?7h":
	case sequence == "\x1b[J":
		for i := range d.lines[d.row:] {
			d.lines[d.row+i] = ""
		}
	case strings.HasSuffix(sequence, "A"):
		up, err := strconv.Atoi(sequence[2 : len(sequence)-1])
		if err != nil {
			t.Fatal(err)
		}
		d.row = max(0, d.row-up)
	default:
		t.Fatalf("a terminal of this test does not know %q", sequence)
	}
}

// TestTerminalOf24Lines: a picture is drawn in the place of the one before, however much there is to show. Nothing leaves the screen on the way.
func TestTerminalOf24Lines(t *testing.T) {
	of := func(clusters int, ready string) *v1alpha1.FleetWorkload {
		fw := fixture(t)
		fw.Status.Clusters, fw.Status.Ready = clustersSaying(strings.Repeat("long ", 40), clusters), ready
		return fw
	}
	moves := func(problems int) *v1alpha1.FleetWorkload {
		fw := moving(t)
		fw.Status.Migration.Problems = slices.Repeat([]string{strings.Repeat("a problem ", 20)}, problems)
		return fw
	}
	for name, draws := range map[string]func(*os.File) error{
		"status --watch": func(terminal *os.File) error {
			show := watchPrinter(terminal, false)
			for _, fw := range []*v1alpha1.FleetWorkload{of(60, "1/60"), of(2, "2/2"), of(60, "60/60")} {
				if err := show(fw); err != nil {
					return err
				}
			}
			return nil
		},
		"get --watch": func(terminal *os.File) error {
			o := getting(t, "", getOptions{namespace: "shop", watch: true})
			show, all := o.fleetPrinter(nil, terminal, atNoon), followed{}
			for _, n := range []int{40, 2, 40} {
				clear(all)
				for i := range n {
					fw := member("shop", fmt.Sprintf("%s%d", strings.Repeat("long-name-", 9), i), waitsForApproval)
					all[client.ObjectKeyFromObject(fw)] = fw
				}
				if err := show(all, nil, nil); err != nil {
					return err
				}
			}
			return nil
		},
		"get NAME --watch": func(terminal *os.File) error {
			o := getting(t, "", getOptions{namespace: "shop", names: []string{"web"}, watch: true})
			show := o.treePrinter(nil, terminal, atNoon)
			for _, fw := range []*v1alpha1.FleetWorkload{of(60, "1/60"), of(2, "2/2"), of(60, "60/60")} {
				if err := show(fw); err != nil {
					return err
				}
			}
			return nil
		},
		"migrate --wait": func(terminal *os.File) error {
			picture := pictureOn(terminal)
			for _, fw := range []*v1alpha1.FleetWorkload{moves(30), moves(1), moves(30)} {
				if err := picture.draw(fw, view{now: noon, program: "kubectl fw"}); err != nil {
					return err
				}
			}
			return nil
		},
		"migrate of a fleet": func(terminal *os.File) error {
			var all []*v1alpha1.FleetWorkload
			for i := range 40 {
				all = append(all, member("shop", fmt.Sprintf("web-%d", i), waitsForApproval))
			}
			f, picture := fleetOf(all...), fleetPictureOn(terminal)
			picture.draw(f, noon)
			picture.draw(f, noon.Add(2*drawnAtMost))
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			text := onTerminal(t, func(terminal *os.File) {
				if err := draws(terminal); err != nil {
					t.Error(err)
				}
			})
			screen := &drawn{lines: make([]string, terminalRows)}
			screen.take(t, text)
			last := text[strings.LastIndex(text, "\x1b[?7l")+len("\x1b[?7l"):]
			want := strings.Split(strings.TrimSuffix(last, "\x1b[?7h"), "\r\n")
			if len(want) > terminalRows {
				t.Fatalf("the last picture has %d lines", len(want))
			}
			if diff := cmp.Diff(want, screen.lines[:len(want)]); diff != "" || len(screen.gone) > 0 {
				t.Errorf("%d lines have left the screen; it is not the last picture (-picture +screen):\n%s", len(screen.gone), diff)
			}
			for _, line := range screen.lines {
				if utf8.RuneCountInString(line) > terminalColumns {
					t.Errorf("a line has %d columns: %s", utf8.RuneCountInString(line), line)
				}
			}
		})
	}
}

// TestRetireOnATerminal: its two tables end at the edge, too, and all of it fits when names are long.
func TestRetireOnATerminal(t *testing.T) {
	long := strings.Repeat("long-name-", 9)
	owner := backends.Owner{Kind: "PropagationPolicy", Namespace: "shop", Name: long}
	goes := backends.Dependent{
		Cluster: "member1", Kind: "Deployment", Namespace: "shop", Name: long, Owner: owner, Fate: backends.FateRemoved, Preserve: long, Note: strings.Repeat("a note ", 12),
	}
	for format, edge := range map[string]bool{"": true, "wide": false} {
		text := onTerminal(t, func(terminal *os.File) {
			r := &retirement{name: "karmada", kind: config.TypeKarmada, backend: &retired{dependents: []backends.Dependent{goes}},
				management: fakeClient(t, on(long, "karmada", "karmada", nil))}
			o := retireOptions{output: inFormat(format, true), preserve: true, dryRun: true}
			if err := r.run(t.Context(), genericiooptions.IOStreams{Out: terminal, ErrOut: io.Discard}, o); err == nil {
				t.Error("it may be switched off")
			}
		})
		longest := 0
		for _, line := range strings.Split(text, "\r\n") {
			longest = max(longest, utf8.RuneCountInString(line))
		}
		if is := longest <= terminalColumns; is != edge || !strings.Contains(text, "--preserve") || !strings.Contains(text, "it runs there") {
			t.Errorf("-o %q: the longest line has %d columns:\n%s", format, longest, text)
		}
	}
}

// TestWhatToTypeIsNotFolded: the first part of approve --change would approve whatever waits.
func TestWhatToTypeIsNotFolded(t *testing.T) {
	long := strings.Repeat("long-name-", 9)
	for name, want := range map[string]string{
		"w":  "approve it until noon with: kubectl fw approve w -n shop --change 5b2f8a7c\n",
		long: "approve it until noon with:\nkubectl fw approve " + long + " -n shop --change 5b2f8a7c\n",
	} {
		var b bytes.Buffer
		writeCommand(&sheet{&b, terminalColumns}, "approve it until noon with:", "kubectl fw approve "+name+" -n shop --change 5b2f8a7c")
		if b.String() != want {
			t.Errorf("%q, want %q", b.String(), want)
		}
	}
}

// TestRoomForNames: short ones leave theirs to the others, and none is cut below the least.
func TestRoomForNames(t *testing.T) {
	row := func(widths ...int) (cells []string) {
		for _, w := range widths {
			cells = append(cells, strings.Repeat("x", w))
		}
		return cells
	}
	for _, test := range []struct {
		columns int
		rows    [][]string
		names   []int
		want    []int
	}{
		{80, [][]string{row(4, 6, 7), row(90, 6, 90)}, []int{0}, []int{80 - 6 - shortestMessage - 6}},
		{80, [][]string{row(4, 6, 7), row(10, 90, 90)}, []int{0, 1}, []int{25, 40}},
		{80, [][]string{row(4, 6, 7), row(90, 90, 90)}, []int{0, 1}, []int{25, 25}},
		{30, [][]string{row(4, 6, 7), row(90, 90, 90)}, []int{0, 1}, []int{shortestName, shortestName}},
	} {
		if got := roomFor(test.rows, test.names, test.columns); !slices.Equal(got, test.want) {
			t.Errorf("%d columns: %v, want %v", test.columns, got, test.want)
		}
	}
}

// TestTheLastPictureIsWhole: it stays, and may be longer than the terminal.
func TestTheLastPictureIsWhole(t *testing.T) {
	text := onTerminal(t, func(terminal *os.File) {
		picture := &inPlace{out: terminal}
		for i, last := range []bool{false, true} {
			if err := picture.draw(last, func(on io.Writer) error {
				_, err := fmt.Fprint(on, strings.Repeat(fmt.Sprintf("picture %d\n", i), 40))
				return err
			}); err != nil {
				t.Error(err)
			}
		}
	})
	if n := strings.Count(text, "picture 0"); n != terminalRows-2 || !strings.Contains(text, "and 18 more lines, for which there is no room") {
		t.Errorf("%d lines of the first one:\n%s", n, text)
	}
	if n := strings.Count(text, "picture 1"); n != 40 {
		t.Errorf("%d lines of the last one", n)
	}
}

func TestFolded(t *testing.T) {
	for line, want := range map[string]string{
		"short":                       "short",
		"exactly 10":                  "exactly 10",
		"two lines of it\n":           "two lines\n  of it\n",
		"  further in than others":    "  further\n    in\n    than\n    others",
		"onewordofmanyletters":        "onewordofm\n  anylette\n  rs",
		"äöüäöüäöü äöü":               "äöüäöüäöü\n  äöü",
		strings.Repeat(" ", 12) + "x": strings.Repeat(" ", 10) + "\nx",
	} {
		want = strings.ReplaceAll(want, strings.Repeat(" ", 10)+"\n", "\n")
		if got := folded(line, 10); got != want {
			t.Errorf("%q becomes %q, want %q", line, got, want)
		}
	}
}
