package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// A tree stays within a terminal of the usual size, 80 columns by 24 lines, unless it is asked for wide. Names may not push the rest out of it.
const (
	treeColumns  = 80 // where no terminal says how many there are
	treeClusters = 15
	treeName     = 36
)

// branch is a line of a tree, with those below it. Without cells it is a name alone.
type branch struct {
	name  string
	cells []string
	below []branch
}

// writeTree shows what a FleetWorkload is made of: the backends that have it, the clusters of each, and the objects on them.
func writeTree(out io.Writer, fw *v1alpha1.FleetWorkload, now time.Time, wide bool) error {
	var drawn bytes.Buffer
	w := printers.GetNewTabWriter(&drawn)
	head := []string{"NAME", "READY", "STATUS", "SINCE"}
	if wide {
		head = append(head, "UPDATED", "REVISION")
	}
	head = append(head, "MESSAGE")
	fmt.Fprintln(w, strings.Join(head, "\t"))
	tree{w, len(head), wide}.draw(treeOf(fw, now, wide), "", "")
	if err := w.Flush(); err != nil {
		return err
	}
	columns := treeColumns
	if on, is := out.(*sheet); is {
		columns = on.columns
	}
	for line := range strings.Lines(drawn.String()) {
		line = strings.TrimRight(line, " \n")
		if !wide {
			line = cut(line, columns)
		}
		fmt.Fprintln(out, line)
	}
	return nil
}

// tree is a table whose first column is one.
type tree struct {
	w       io.Writer
	columns int
	wide    bool
}

// draw writes a branch and those below it. before stands in front of its own line, and under in front of theirs.
func (t tree) draw(b branch, before, under string) {
	cells := make([]string, t.columns) // a line without some would end the columns
	cells[0] = before + b.name
	if !t.wide {
		cells[0] = before + middleOut(b.name, treeName)
	}
	copy(cells[1:], b.cells)
	fmt.Fprintln(t.w, strings.Join(cells, "\t"))
	for i, child := range b.below {
		if i == len(b.below)-1 {
			t.draw(child, under+"└─ ", under+"   ")
		} else {
			t.draw(child, under+"├─ ", under+"│  ")
		}
	}
}

func treeOf(fw *v1alpha1.FleetWorkload, now time.Time, wide bool) branch {
	s := fw.Status
	reason, message := stateOf(fw)
	var since *metav1.Time
	if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady); c != nil {
		since = &c.LastTransitionTime
	}
	cells := []string{orNone(s.Ready), reason, age(since, now)}
	if wide {
		cells = append(cells, number(s.UpdatedReplicas), orNone(s.Revision))
	}
	root := branch{name: "FleetWorkload " + fw.Name, cells: append(cells, orNone(message))}
	for _, backend := range owners(fw) {
		below := branch{name: "backend " + backend}
		for _, c := range s.Clusters {
			if ownerOf(fw, c.Name) == backend {
				below.below = append(below.below, clusterBranch(c, now, wide))
			}
		}
		root.below = append(root.below, below)
	}
	if !wide {
		shorten(root.below)
	}
	if left := s.Truncated; left != nil && *left > 0 {
		root.below = append(root.below, branch{name: "and " + counted(int(*left), "cluster more", "clusters more")})
	}
	if objects := carriedBy(fw); len(objects) > 0 {
		root.below = append(root.below, branch{name: "on each cluster", below: objects})
	}
	return root
}

// shorten leaves so many clusters, those that need attention most. Each backend keeps at least one.
func shorten(backends []branch) {
	for i, b := range backends {
		if most := treeClusters / len(backends); len(b.below) > most {
			left := branch{name: fmt.Sprintf("and %d more (-o wide)", len(b.below)-most+1)}
			backends[i].below = append(slices.Clone(b.below[:most-1]), left)
		}
	}
}

// owners are the backends that have something of it.
func owners(fw *v1alpha1.FleetWorkload) (all []string) {
	for _, c := range fw.Status.Clusters {
		if owner := ownerOf(fw, c.Name); !slices.Contains(all, owner) {
			all = append(all, owner)
		}
	}
	if len(all) == 0 {
		return []string{backendOf(fw)}
	}
	slices.Sort(all)
	return all
}

// ownerOf is the backend that has the workload on a cluster. In a migration that is the new one once it has taken it over.
func ownerOf(fw *v1alpha1.FleetWorkload, cluster string) string {
	m := fw.Status.Migration
	if m == nil || m.Phase == "" {
		return orNone(fw.Status.Backend)
	}
	for _, c := range m.Clusters {
		taken := c.Phase == v1alpha1.MigrationPhaseVerifying || c.Phase == v1alpha1.MigrationPhaseReleasing
		if taken && (c.Name == cluster || c.TargetName == cluster) {
			return m.To
		}
	}
	return m.From
}

func clusterBranch(c v1alpha1.ClusterStatus, now time.Time, wide bool) branch {
	cells := []string{readyOf(c), clusterState(c), age(c.LastTransitionTime, now)}
	if wide {
		cells = append(cells, number(c.Updated), orNone(c.Revision))
	}
	return branch{name: c.Name, cells: append(cells, orNone(oneLine(c.Message)))}
}

// carriedBy are what each cluster gets. The status does not tell of them one by one: a cluster's row speaks of all of its objects.
func carriedBy(fw *v1alpha1.FleetWorkload) (all []branch) {
	if w := fw.Status.Workload; w != nil {
		all = append(all, branch{name: w.Kind + " " + w.Name})
	}
	if p := fw.Status.Placement; p != nil {
		for _, c := range p.Companions {
			all = append(all, branch{name: c.Kind + " " + c.Name})
		}
	}
	if fw.Spec.Dependencies == v1alpha1.DependencyPolicyPropagate {
		all = append(all, branch{name: "what pods refer to"})
	}
	return all
}

// readyOf is how many replicas of a cluster are ready, of those that it is to run.
func readyOf(c v1alpha1.ClusterStatus) string { return number(c.Ready) + "/" + number(c.Desired) }

// clusterState is a word for a cluster: what is wrong with what it reports or was sent, or else how the workload is there.
func clusterState(c v1alpha1.ClusterStatus) string {
	switch {
	case c.GivenUp == metav1.ConditionTrue:
		return "GivenUp"
	case c.Stale == metav1.ConditionTrue:
		return v1alpha1.ReasonStale
	case c.Applied == metav1.ConditionFalse:
		return v1alpha1.ReasonApplyFailed
	case c.Applied == metav1.ConditionUnknown:
		return v1alpha1.ReasonApplying
	default:
		return orNone(string(c.Health))
	}
}
