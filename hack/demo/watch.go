package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/dynamic"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/lab"
)

// board shows the FleetWorkloads: in place on a terminal, changed lines under their time otherwise.
type board struct {
	out    io.Writer
	screen io.Writer
	began  time.Time
	rows   map[string][]string
	drawn  int
}

// watch shows the status until every FleetWorkload is ready.
func (d *demo) watch(ctx context.Context, out io.Writer) error {
	return d.await(ctx, out, samples(), notReady)
}

// await shows the status of FleetWorkloads until none of them lacks anything.
func (d *demo) await(ctx context.Context, out io.Writer, of []sample, lacks func(*v1alpha1.FleetWorkload) string) error {
	c, _, err := d.client(lab.Hub)
	if err != nil {
		return err
	}
	tooLong := fmt.Errorf("not ready within %s (--timeout)", d.timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, d.timeout, tooLong)
	defer cancel()
	b := &board{out: out, screen: screen(out), began: time.Now(), rows: map[string][]string{}}
	pending := map[string]string{}
	for _, s := range of {
		pending[s.name] = "has no status"
	}
	fleetWorkloads := c.Resource(v1alpha1.GroupVersion.WithResource("fleetworkloads")).Namespace(namespace)
	var stuck error
	for len(pending) > 0 && stuck == nil {
		err := watchOnce(ctx, fleetWorkloads, func(fw *v1alpha1.FleetWorkload) (bool, error) {
			if !slices.ContainsFunc(of, func(s sample) bool { return s.name == fw.Name }) {
				return false, nil
			}
			if why := lacks(fw); why != "" {
				pending[fw.Name] = why
			} else {
				delete(pending, fw.Name)
			}
			stuck = errors.Join(stuck, needsPerson(fw))
			return len(pending) == 0 || stuck != nil, b.show(fw)
		})
		select {
		case <-ctx.Done():
			return unready(context.Cause(ctx), pending)
		case err := <-d.operator.exited:
			return fmt.Errorf("the operator has ended: %w", errors.Join(err, errors.New("see its log")))
		case <-time.After(time.Second / 2):
		}
		if err != nil {
			fmt.Fprintf(out, "watch again: %v\n", err)
			b.drawn = 0
		}
	}
	return stuck
}

func unready(cause error, pending map[string]string) error {
	errs := []error{cause}
	for _, s := range samples() {
		if why, waiting := pending[s.name]; waiting {
			errs = append(errs, fmt.Errorf("FleetWorkload %s/%s: %s", namespace, s.name, why))
		}
	}
	return errors.Join(errs...)
}

// watchOnce lists and then watches until see says that it has seen enough, ctx ends, or the server ends the watch.
func watchOnce(ctx context.Context, c dynamic.ResourceInterface, see func(*v1alpha1.FleetWorkload) (bool, error)) error {
	list, err := c.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list FleetWorkloads: %w", err)
	}
	for i := range list.Items {
		if enough, err := seeObject(&list.Items[i], see); enough || err != nil {
			return err
		}
	}
	// The server ends it now and then, so that the operator's end is noticed.
	timeout := int64(5)
	w, err := c.Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), TimeoutSeconds: &timeout})
	if err != nil {
		return fmt.Errorf("watch FleetWorkloads: %w", err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		obj, ok := e.Object.(*unstructured.Unstructured)
		if !ok || e.Type == watch.Error {
			return fmt.Errorf("watch FleetWorkloads: %v", e.Object)
		}
		if enough, err := seeObject(obj, see); enough || err != nil {
			return err
		}
	}
	return nil
}

func seeObject(obj *unstructured.Unstructured, see func(*v1alpha1.FleetWorkload) (bool, error)) (bool, error) {
	fw := &v1alpha1.FleetWorkload{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, fw); err != nil {
		return false, fmt.Errorf("read FleetWorkload %s: %w", obj.GetName(), err)
	}
	return see(fw)
}

// needsPerson is an error when a hand-over goes no further by itself.
func needsPerson(fw *v1alpha1.FleetWorkload) error {
	m := fw.Status.Migration
	if m == nil || m.Approval == "" {
		return nil
	}
	return fmt.Errorf("the hand-over of FleetWorkload %s from %s to %s waits for a person: %s", fw.Name, m.From, m.To, m.Failure)
}

// notReady says why a FleetWorkload is not ready, in the operator's words; empty when it is, and where it belongs.
func notReady(fw *v1alpha1.FleetWorkload) string {
	ready := meta.FindStatusCondition(fw.Status.Conditions, v1alpha1.ConditionReady)
	m := fw.Status.Migration
	switch {
	case ready == nil:
		return "has no status"
	case fw.Status.ObservedGeneration == nil || *fw.Status.ObservedGeneration != fw.Generation:
		return "the status is of an older spec"
	case m != nil && m.Phase != "":
		return strings.Join(append([]string{fmt.Sprintf("moves from %s to %s: %s", m.From, m.To, m.Phase)}, m.Problems...), "; ")
	case fw.Status.Backend != fw.Spec.Backend:
		return fmt.Sprintf("is carried out by %s, not %s", fw.Status.Backend, fw.Spec.Backend)
	case ready.Status != metav1.ConditionTrue:
		return fmt.Sprintf("Ready is %s: %s: %s", ready.Status, ready.Reason, ready.Message)
	default:
		return ""
	}
}

var header = []string{"NAME", "BACKEND", "READY", "UPDATED", "CLUSTERS", "STATUS", "READY BY CLUSTER"}

func row(fw *v1alpha1.FleetWorkload) []string {
	s := fw.Status
	status := ""
	if ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady); ready != nil {
		status = ready.Reason
	}
	if s.Migration != nil && s.Migration.Phase != "" {
		status = string(s.Migration.Phase)
	}
	clusters := slices.Clone(s.Clusters)
	slices.SortFunc(clusters, func(a, b v1alpha1.ClusterStatus) int { return strings.Compare(a.Name, b.Name) })
	var each []string
	for _, c := range clusters {
		each = append(each, fmt.Sprintf("%s %s/%s", c.Name, number(c.Ready), number(c.Desired)))
	}
	cells := []string{fw.Name, s.Backend, s.Ready, number(s.UpdatedReplicas), s.ClustersReady, status, strings.Join(each, ", ")}
	for i, cell := range cells {
		if cell == "" {
			cells[i] = "-"
		}
	}
	return cells
}

func number(n *int32) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

// show draws what has changed.
func (b *board) show(fw *v1alpha1.FleetWorkload) error {
	cells := row(fw)
	if slices.Equal(b.rows[fw.Name], cells) {
		return nil
	}
	first := len(b.rows) == 0
	b.rows[fw.Name] = cells
	if b.screen != nil {
		return b.redraw()
	}
	if first {
		fmt.Fprintln(b.out, "    AT  "+line(header))
	}
	_, err := fmt.Fprintf(b.out, "%5.1fs  %s\n", time.Since(b.began).Seconds(), line(cells))
	return err
}

// line sets cells in columns of fixed widths, since lines to come are not known.
func line(cells []string) string {
	widths := []int{20, 8, 6, 8, 9, 12, 0}
	var text strings.Builder
	for i, cell := range cells {
		fmt.Fprintf(&text, "%-*s ", widths[i], cell)
	}
	return strings.TrimRight(text.String(), " ")
}

// redraw replaces the table on the terminal. Lines longer than it is wide are cut: a wrapped one would count for two.
func (b *board) redraw() error {
	const noWrap, wrap, clearBelow = "\x1b[?7l", "\x1b[?7h", "\x1b[J"
	var text bytes.Buffer
	if b.drawn > 0 {
		fmt.Fprintf(&text, "\x1b[%dA\r", b.drawn)
	}
	text.WriteString(clearBelow + noWrap)
	w := printers.GetNewTabWriter(&text)
	fmt.Fprintln(w, indent+strings.Join(header, "\t"))
	for _, s := range samples() {
		if cells, known := b.rows[s.name]; known {
			fmt.Fprintln(w, indent+strings.Join(cells, "\t"))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	text.WriteString(wrap)
	b.drawn = 1 + len(b.rows)
	_, err := b.screen.Write(text.Bytes())
	return err
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || os.Getenv("TERM") == "" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
