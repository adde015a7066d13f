package pass

import (
	"maps"
	"slices"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/migration"
	"github.com/fleetworkload/fleetworkload/internal/placement"
)

// letJoin adds the clusters to the migration that get their first replicas of a new number. They were chosen when it began, and there were fewer
// replicas than clusters. Without them the others would run their shares too, and lose them when the migration ends.
func (d *Decision) letJoin() error {
	record := d.record.placement
	if suspended(d.in.FleetWorkload) || record == nil || record.Replicas == nil || !d.scaled() || d.work.plan.Replicas == nil {
		return nil
	}
	joining := d.joining(*record.Replicas, d.idle())
	if len(joining) == 0 {
		return nil
	}
	next := migration.Join(*d.record.migration, joining, migration.Waves(d.spec.Spec.Migration))
	d.record.migration, d.end.GoesOn = &next, true
	return errEnough
}

// scaled tells whether the spec asks for another number than was divided last.
func (d *Decision) scaled() bool {
	record := d.record.placement
	return record == nil || record.Replicas == nil || *record.Replicas != d.work.asked.Replicas
}

// idle are the clusters that the placement chooses and that have nothing, by the source's names; none when that is not known. In Releasing the
// source has no placement any more.
func (d *Decision) idle() (idle []v1alpha1.MigrationClusterStatus) {
	h, m := d.handOver, d.record.migration
	side := h.source
	if m.Phase == v1alpha1.MigrationPhaseReleasing {
		side = h.target
	}
	if !side.observed.Selection.Settled {
		return nil
	}
	running := map[string]bool{}
	for _, c := range m.Clusters {
		running[side.nameOf(c)] = true
	}
	choice, err := placement.Choose(d.in.Aliases.Written(d.spec, side.name).Spec.Placement, placement.Situation{
		Fleet: side.fleet, Chosen: side.observed.Selection, Running: running, Group: d.group(),
		Divided: d.work.plan.Division() == v1alpha1.DivisionTypeDivided, Numbered: slices.Collect(maps.Keys(d.work.asked.Own)),
		MaxLostPercent: d.in.MaxRemovalPercent, Now: d.now.Time,
	})
	if err != nil {
		return nil
	}
	for _, c := range h.source.fleet.Clusters {
		twin, known := migration.Twin(c, d.in.Aliases.On(h.target.name, c.Name), h.target.fleet)
		entry := v1alpha1.MigrationClusterStatus{Name: c.Name, TargetName: twin.Name}
		if twin.Name == c.Name {
			entry.TargetName = ""
		}
		name := side.nameOf(entry)
		// One with a number of its own had that from the beginning, or has come since.
		if known && slices.Contains(choice.Clusters, name) && !running[name] && !d.work.plan.Numbered(c.Name) {
			idle = append(idle, entry)
		}
	}
	return idle
}

// joining are those of the idle clusters that get replicas now. One that had got some of the number before is a newcomer: what its coming moves waits
// for the end of the migration.
func (d *Decision) joining(before int32, idle []v1alpha1.MigrationClusterStatus) []v1alpha1.MigrationClusterStatus {
	for newcomers := d.sharing(before, idle); len(newcomers) > 0; newcomers = d.sharing(before, idle) {
		idle = without(idle, newcomers)
	}
	for {
		joining := d.sharing(*d.work.plan.Replicas, idle)
		barred := slices.DeleteFunc(slices.Clone(joining), d.mayJoin)
		if len(barred) == 0 {
			return joining
		}
		idle = without(idle, barred)
	}
}

// sharing are those of the idle clusters that get any of a number, when it is divided over them and those of the migration; none when it cannot be.
func (d *Decision) sharing(replicas int32, idle []v1alpha1.MigrationClusterStatus) (sharing []v1alpha1.MigrationClusterStatus) {
	listed, away := d.handed()
	var more []backends.Cluster
	for _, c := range idle {
		cluster, _ := d.handOver.source.fleet.Get(c.Name)
		listed, more = append(listed, c.Name), append(more, cluster)
	}
	shares, err := d.divideOver(d.work.plan.Of(replicas), withClusters(*d.fleet, more), listed, away)
	for _, c := range idle {
		if err == nil && shares[c.Name] > 0 {
			sharing = append(sharing, c)
		}
	}
	return sharing
}

// mayJoin tells whether nothing stands against a cluster's part in the migration.
func (d *Decision) mayJoin(c v1alpha1.MigrationClusterStatus) bool {
	h := d.handOver
	here, _ := h.source.fleet.Get(c.Name)
	there, _ := h.target.fleet.Get(migration.NameOnTarget(c))
	if _, unsupported := h.target.observed.Selection.Unsupported[there.Name]; unsupported || !d.terms.Reaches(here.Labels) || !d.terms.Reaches(there.Labels) {
		return false
	}
	targets, err := h.source.plan.Pinned(h.source.fleet, []string{c.Name}, nil)
	if err != nil {
		return false // it is refused where it is to run
	}
	_, problems := migration.Candidate{
		Source: d.migrationSide(h.source.name, h.source.fleet), Target: d.migrationSide(h.target.name, h.target.fleet),
		Plan: h.source.plan, There: h.target.plan, Aliases: d.in.Aliases, Targets: targets,
	}.Validate()
	return len(problems) == 0
}

func without(all, some []v1alpha1.MigrationClusterStatus) []v1alpha1.MigrationClusterStatus {
	return slices.DeleteFunc(slices.Clone(all), func(c v1alpha1.MigrationClusterStatus) bool {
		return slices.ContainsFunc(some, func(s v1alpha1.MigrationClusterStatus) bool { return s.Name == c.Name })
	})
}
