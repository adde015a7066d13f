package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/config"
)

// fleetWorkload is one's namespace and name.
type fleetWorkload struct{ namespace, name string }

// standing is what depends on a backend.
type standing struct {
	backend string
	kind    config.Type
	// at are the FleetWorkloads that depend on it, with the reason.
	at         map[fleetWorkload]string
	dependents []backends.Dependent
}

// add takes a FleetWorkload in when it depends on the backend.
func (s *standing) add(fw *v1alpha1.FleetWorkload) {
	var why string
	m := fw.Status.Migration
	switch {
	case m != nil && m.Phase != "" && m.Phase != v1alpha1.MigrationPhaseCompleted && (m.From == s.backend || m.To == s.backend):
		why = fmt.Sprintf("its migration from %s to %s is in phase %s", m.From, m.To, m.Phase)
	case fw.Status.Backend == s.backend:
		why = "it runs there"
	case fw.Spec.Backend == s.backend:
		why = "spec.backend says so"
	default:
		return
	}
	s.at[fleetWorkload{fw.Namespace, fw.Name}] = why
}

// goes are the objects that would go with the backend, and are not there for itself.
func (s standing) goes() []backends.Dependent {
	return slices.DeleteFunc(slices.Clone(s.dependents), func(d backends.Dependent) bool {
		return d.Fate != backends.FateRemoved || d.Own
	})
}

// preservable are the owners of what goes and can be made to stay, with what that takes.
func (s standing) preservable() (owners []backends.Owner, writes map[backends.Owner]string) {
	writes = map[backends.Owner]string{}
	for _, d := range s.goes() {
		if d.Preserve != "" {
			writes[d.Owner] = d.Preserve
		}
	}
	return slices.SortedFunc(maps.Keys(writes), compareOwners), writes
}

// free tells whether nothing stands against switching the backend off.
func (s standing) free() bool { return len(s.at) == 0 && len(s.goes()) == 0 }

func compareOwners(a, b backends.Owner) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func (r *retirement) run(ctx context.Context, streams genericiooptions.IOStreams, o retireOptions) error {
	steps := o.output.sheet(streams.Out)
	if !o.output.isText() {
		steps = streams.ErrOut // they are no part of the result
	}
	s, err := r.look(ctx)
	if err != nil {
		return err
	}
	if o.preserve {
		if err := r.preserve(ctx, steps, s, o.dryRun); err != nil {
			return err
		}
		if !o.dryRun {
			if s, err = r.settle(ctx); err != nil {
				return err
			}
		}
	}
	if err := s.print(streams.Out, o.output); err != nil {
		return err
	}
	if !s.free() {
		return fmt.Errorf("backend %s may not be switched off yet", s.backend)
	}
	return nil
}

// preserve has all stay that can.
func (r *retirement) preserve(ctx context.Context, out io.Writer, s standing, dryRun bool) error {
	owners, writes := s.preservable()
	var errs []error
	for _, owner := range owners {
		if dryRun {
			fmt.Fprintf(out, "would preserve what %s has brought: %s\n", title(owner), writes[owner])
			continue
		}
		if err := r.backend.Preserve(ctx, owner); err != nil {
			errs = append(errs, err)
			continue
		}
		fmt.Fprintf(out, "preserved what %s has brought: %s\n", title(owner), writes[owner])
	}
	if len(owners) > 0 {
		fmt.Fprintln(out)
	}
	return errors.Join(errs...)
}

// settle waits until the backend has taken up what was preserved, or for so long that it does not.
func (r *retirement) settle(ctx context.Context) (standing, error) {
	began := time.Now()
	for {
		s, err := r.look(ctx)
		if err != nil {
			return s, err
		}
		if owners, _ := s.preservable(); len(owners) == 0 || time.Since(began) > r.timeout {
			return s, nil
		}
		select {
		case <-ctx.Done():
			return s, ctx.Err()
		case <-time.After(r.poll):
		}
	}
}

// retireResult is what stands against switching a backend off, for scripts.
type retireResult struct {
	Backend string      `json:"backend"`
	Type    config.Type `json:"type"`
	// MayBeSwitchedOff: no FleetWorkload depends on it, and no object goes with it.
	MayBeSwitchedOff bool            `json:"mayBeSwitchedOff"`
	FleetWorkloads   []dependingOnIt `json:"fleetWorkloads"`
	Objects          []goingWithIt   `json:"objects"`
	// Left is how many objects stay on clusters, and that nobody repairs any more.
	Left int `json:"left"`
}

// dependingOnIt is a FleetWorkload, and why it depends on the backend.
type dependingOnIt struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Why       string `json:"why"`
}

// goingWithIt is an object of a cluster that would go with the backend.
type goingWithIt struct {
	Cluster   string `json:"cluster"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	// Name is empty when it stands for all objects of its kind.
	Name      string     `json:"name,omitempty"`
	BroughtBy broughtFor `json:"broughtBy"`
	// Preserve is what --preserve would write to have it stay; empty when it cannot.
	Preserve string `json:"preserve,omitempty"`
	Note     string `json:"note,omitempty"`
}

// broughtFor is the backend's object that has brought it.
type broughtFor struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// print prints what stands against switching the backend off, as a text or for scripts.
func (s standing) print(out io.Writer, as *output) error {
	if as.isText() {
		return s.write(as.sheet(out))
	}
	result := retireResult{
		Backend: s.backend, Type: s.kind, MayBeSwitchedOff: s.free(), Left: s.left(), FleetWorkloads: []dependingOnIt{}, Objects: []goingWithIt{},
	}
	var about []named
	for _, fw := range s.fleetWorkloads() {
		result.FleetWorkloads = append(result.FleetWorkloads, dependingOnIt{fw.namespace, fw.name, s.at[fw]})
		about = append(about, namedFleetWorkload(fw.name))
	}
	for _, d := range sorted(s.goes()) {
		result.Objects = append(result.Objects, goingWithIt{
			Cluster: d.Cluster, Kind: d.Kind, Namespace: d.Namespace, Name: d.Name, BroughtBy: broughtFor(d.Owner), Preserve: d.Preserve, Note: d.Note,
		})
	}
	return as.write(out, result, about...)
}

// write prints what stands against switching the backend off to a person.
func (s standing) write(out io.Writer) error {
	var errs []error
	if len(s.at) > 0 {
		fmt.Fprintf(out, "FleetWorkloads that depend on backend %s: %d. Move or delete them.\n\n", s.backend, len(s.at))
		errs = append(errs, s.writeFleetWorkloads(out))
	}
	if goes := s.goes(); len(goes) > 0 {
		fmt.Fprintf(out, "Objects that go from clusters when %s lets go of them: %d\n\n", s.backend, len(goes))
		errs = append(errs, writeDependents(out, goes))
	}
	if left := s.left(); left > 0 {
		fmt.Fprintf(out, "Objects that stay on clusters, and that nobody repairs any more: %d\n\n", left)
	}
	if s.free() {
		fmt.Fprintf(out, "Backend %s may be switched off: no FleetWorkload depends on it, and nothing goes from clusters with it.\n"+
			"First take it out of the operator's configuration; then %s.\n", s.backend, lastSteps(s.kind))
	}
	return errors.Join(errs...)
}

func (s standing) left() (n int) {
	for _, d := range s.dependents {
		if d.Fate == backends.FateLeft && !d.Own {
			n++
		}
	}
	return n
}

func lastSteps(kind config.Type) string {
	if kind == config.TypeKarmada {
		return "unjoin its clusters (karmadactl unjoin), and uninstall Karmada"
	}
	return "detach its clusters (clusteradm unjoin, delete the ManagedClusters), and uninstall OCM"
}

func (s standing) writeFleetWorkloads(out io.Writer) error {
	rows := [][]string{{"NAMESPACE", "NAME", "WHY"}}
	for _, fw := range s.fleetWorkloads() {
		rows = append(rows, []string{fw.namespace, fw.name, s.at[fw]})
	}
	err := writeRows(out, rows, 0, 1)
	fmt.Fprintln(out)
	return err
}

// fleetWorkloads are those that depend on the backend, in their order.
func (s standing) fleetWorkloads() []fleetWorkload {
	return slices.SortedFunc(maps.Keys(s.at), func(a, b fleetWorkload) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
}

// sorted puts those together that the same owner has brought.
func sorted(dependents []backends.Dependent) []backends.Dependent {
	slices.SortStableFunc(dependents, func(a, b backends.Dependent) int {
		return cmp.Or(compareOwners(a.Owner, b.Owner), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return dependents
}

func writeDependents(out io.Writer, dependents []backends.Dependent) error {
	rows := [][]string{{"CLUSTER", "OBJECT", "BROUGHT BY", "CAN STAY", "NOTE"}}
	for _, d := range sorted(dependents) {
		stays := "no"
		if d.Preserve != "" {
			stays = "--preserve"
		}
		object := title(backends.Owner{Kind: d.Kind, Namespace: d.Namespace, Name: d.Name})
		rows = append(rows, []string{d.Cluster, object, title(d.Owner), stays, orNone(d.Note)})
	}
	err := writeRows(out, rows, 0, 1, 2)
	fmt.Fprintln(out)
	return err
}

// title is an object's kind and name.
func title(o backends.Owner) string {
	switch {
	case o.Name == "":
		return o.Kind + "s"
	case o.Namespace == "":
		return o.Kind + " " + o.Name
	default:
		return o.Kind + " " + o.Namespace + "/" + o.Name
	}
}
