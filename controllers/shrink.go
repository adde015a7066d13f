package controllers

import (
	"slices"
	"unique"

	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// Shrink makes a FleetWorkload small in the cache. A thousand of them on a hundred clusters have a hundred thousand rows, in which the same words are: those are
// there once. Anything else is without its managed fields alone. It never fails.
func Shrink(obj any) (any, error) {
	if fw, is := obj.(*v1alpha1.FleetWorkload); is {
		fw.Status.Clusters = slices.Clone(fw.Status.Clusters) // decoding has left room for more
		for i := range fw.Status.Clusters {
			row := &fw.Status.Clusters[i]
			share(&row.Name, &row.Revision, &row.Message)
			share(&row.Applied, &row.Stale, &row.GivenUp, &row.Paused)
			share(&row.Health)
		}
		if record := fw.Status.Placement; record != nil {
			record.Clusters = slices.Clone(record.Clusters)
			for i := range record.Clusters {
				cluster := &record.Clusters[i]
				share(&cluster.Name)
				share(&cluster.State)
				share(&cluster.ConflictPolicy)
				share(&cluster.Removal)
			}
		}
	}
	return cache.TransformStripManagedFields()(obj)
}

// share has texts be the same strings as others'.
func share[T ~string](texts ...*T) {
	for _, text := range texts {
		*text = T(unique.Make(string(*text)).Value())
	}
}
