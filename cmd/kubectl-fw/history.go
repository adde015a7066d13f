package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/internal/brief"
	"github.com/fleetworkload/fleetworkload/internal/revisions"
)

const historyLong = `Show what a FleetWorkload has shipped: the versions of template, companions, dependencies and overrides that are kept
(spec.revisionHistoryLimit), each with what it changed. What Secrets hold is not shown.`

const historyExample = `  # Which versions are there to go back to?
  kubectl-fw history web -n shop

  # What did one of them change, and what would going back to it change?
  kubectl-fw history web -n shop --revision 3

  # All that each version has changed, for scripts
  kubectl-fw history web -n shop -o json

  # The whole of it
  kubectl-fw history web -n shop --revision 3 -o yaml`

type historyOptions struct {
	revision int64
	output   *output
}

func newHistoryCommand(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	opts := historyOptions{output: newOutput(true)}
	cmd := &cobra.Command{
		Use:               "history NAME",
		Short:             "Show the versions that a FleetWorkload has shipped",
		Long:              historyLong,
		Example:           historyExample,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeNames(flags, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := opts.check(); err != nil {
				return err
			}
			c, key, err := connectFor(flags, args[0])
			if err != nil {
				return err
			}
			p, err := readPast(cmd.Context(), c, key)
			if err != nil {
				return err
			}
			return opts.write(streams.Out, p, time.Now())
		},
	}
	cmd.Flags().Int64Var(&opts.revision, "revision", 0, "show one version: what it changed, and what going back to it would change")
	completeFlag(cmd, "revision", completeRevisions(flags))
	opts.output.addFlags(cmd, "wide shows all changes; json, yaml and the others print the list, or the whole version of --revision")
	return cmd
}

func (o historyOptions) check() error {
	if o.revision < 0 {
		return fmt.Errorf("--revision %d: versions are numbered from 1", o.revision)
	}
	return o.output.check()
}

func (o historyOptions) write(out io.Writer, p *past, now time.Time) error {
	if o.output.isText() {
		out = o.output.sheet(out)
	}
	if o.revision == 0 {
		if o.output.isText() {
			return p.writeTable(out, now, o.output.isWide())
		}
		listed, err := p.list()
		if err != nil {
			return err
		}
		return o.output.write(out, listed, p.names()...)
	}
	i, err := p.find(o.revision)
	if err != nil {
		return err
	}
	if o.output.isText() {
		return p.writeVersion(out, i, now)
	}
	shipped, err := masked(p.versions[i].shipped)
	if err != nil {
		return err
	}
	return o.output.write(out, wholeVersion{shipped}, p.names()[i])
}

// wholeVersion is a version as the part of a FleetWorkload that it is.
type wholeVersion struct {
	Spec revisions.Shipped `json:"spec"`
}

// listedPast is the list of versions for scripts.
type listedPast struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Limit is how many versions are kept that are older than the newest one.
	Limit int32 `json:"limit"`
	// Present is the revision that the spec has; null when that is not kept, as it was not shipped yet.
	Present  *int64          `json:"present"`
	Versions []listedVersion `json:"versions"`
}

type listedVersion struct {
	Revision int64 `json:"revision"`
	// Name is that of the ControllerRevision.
	Name string `json:"name"`
	// Since is when it was first shipped.
	Since metav1.Time `json:"since"`
	// Changes are those to the version before; null for the oldest one, of which they are not known.
	Changes []string `json:"changes"`
}

// list is what the table shows, with all changes.
func (p *past) list() (listedPast, error) {
	listed := listedPast{Namespace: p.fw.Namespace, Name: p.fw.Name, Limit: revisions.Limit(&p.fw.Spec), Versions: []listedVersion{}}
	if p.present >= 0 {
		listed.Present = &p.versions[p.present].number
	}
	for i, v := range p.versions {
		lines, known, err := p.before(i)
		if err != nil {
			return listed, err
		}
		if known {
			lines = orEmpty(lines)
		}
		listed.Versions = append(listed.Versions, listedVersion{Revision: v.number, Name: v.name, Since: v.since, Changes: lines})
	}
	return listed, nil
}

// names are the ControllerRevisions that hold the versions.
func (p *past) names() (all []named) {
	for _, v := range p.versions {
		all = append(all, named{appsv1.SchemeGroupVersion.WithKind("ControllerRevision"), v.name})
	}
	return all
}

// past is what is kept of a FleetWorkload.
type past struct {
	fw *v1alpha1.FleetWorkload
	// versions are those that are kept, the oldest first; present is the index of the one that the spec has, -1 when it is not kept.
	versions []version
	present  int
}

// version is what was shipped.
type version struct {
	number  int64
	name    string
	since   metav1.Time
	shipped revisions.Shipped
}

// readPast reads a FleetWorkload and its versions. What others have put among them is left out.
func readPast(ctx context.Context, c client.Reader, key client.ObjectKey) (*past, error) {
	fw, err := read(ctx, c, key)
	if err != nil {
		return nil, err
	}
	list := &appsv1.ControllerRevisionList{}
	err = c.List(ctx, list, client.InNamespace(fw.Namespace), client.MatchingLabels{v1alpha1.LabelHistoryOf: string(fw.UID)})
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("%w; versions are kept in ControllerRevisions: the right to list them is needed", err)
	} else if err != nil {
		return nil, fmt.Errorf("list ControllerRevisions of %s: %w", key, err)
	}
	present, err := revisions.VersionOf(fw, revisions.Of(&fw.Spec))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b appsv1.ControllerRevision) int { return cmp.Compare(a.Revision, b.Revision) })
	p := &past{fw: fw, present: -1}
	for i := range list.Items {
		kept := &list.Items[i]
		shipped, ours := revisions.Read(fw, kept)
		if !ours {
			continue
		}
		if kept.Name == present.Name {
			p.present = len(p.versions)
		}
		p.versions = append(p.versions, version{number: kept.Revision, name: kept.Name, since: kept.CreationTimestamp, shipped: shipped})
	}
	return p, nil
}

func (p *past) key() string { return p.fw.Namespace + "/" + p.fw.Name }

// find is the index of a version.
func (p *past) find(number int64) (int, error) {
	i := slices.IndexFunc(p.versions, func(v version) bool { return v.number == number })
	if i < 0 {
		return 0, fmt.Errorf("revision %d of %s is not kept; there are: %s", number, p.key(), p.numbers())
	}
	return i, nil
}

func (p *past) numbers() string {
	if len(p.versions) == 0 {
		return "none"
	}
	var all []string
	for _, v := range p.versions {
		all = append(all, fmt.Sprint(v.number))
	}
	return strings.Join(all, ", ")
}

// before are the changes that a version has brought; nil and false for the oldest one.
func (p *past) before(i int) (lines []string, known bool, err error) {
	if i == 0 {
		return nil, false, nil
	}
	lines, err = changes(p.versions[i-1].shipped, p.versions[i].shipped)
	return lines, true, err
}

// mostChanges is how many changes stand in a row of the table, unless it is wide.
const mostChanges = 3

func (p *past) writeTable(out io.Writer, now time.Time, wide bool) error {
	fmt.Fprintf(out, "%s: %s kept, with up to %d older than the newest one\n", p.key(), counted(len(p.versions), "version", "versions"),
		revisions.Limit(&p.fw.Spec))
	if p.present < 0 {
		fmt.Fprintln(out, "note: the present spec is not among them: it has not been shipped yet"+unready(p.fw))
	}
	if len(p.versions) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	w := newTable(out)
	fmt.Fprintln(w, "REVISION\tPRESENT\tAGE\tCHANGE")
	for i, v := range p.versions {
		lines, known, err := p.before(i)
		if err != nil {
			return err
		}
		row := none
		if known {
			most := mostChanges
			if wide {
				most = len(lines)
			}
			row = brief.Clauses(lines, most)
		}
		mark := ""
		if i == p.present {
			mark = "*"
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\n", v.number, mark, age(&v.since, now), row)
	}
	return w.Flush()
}

func (p *past) writeVersion(out io.Writer, i int, now time.Time) error {
	fmt.Fprintf(out, "%s, revision %d, first shipped %s ago\n", p.key(), p.versions[i].number, age(&p.versions[i].since, now))
	switch lines, known, err := p.before(i); {
	case err != nil:
		return err
	case known:
		writeLines(out, fmt.Sprintf("changed since revision %d", p.versions[i-1].number), lines)
	default:
		fmt.Fprintln(out, "it is the oldest that is kept")
	}
	if i == p.present {
		fmt.Fprintln(out, "the present spec is the same")
		return nil
	}
	lines, err := changes(revisions.Of(&p.fw.Spec), p.versions[i].shipped)
	if err != nil {
		return err
	}
	writeLines(out, "going back to it from the present spec changes", lines)
	return nil
}

func writeLines(out io.Writer, head string, lines []string) {
	fmt.Fprintln(out, head+":")
	for _, line := range lines {
		fmt.Fprintln(out, "  "+line)
	}
}
