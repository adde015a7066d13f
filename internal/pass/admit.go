package pass

import (
	"fmt"
	"strings"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// admitNew refuses before anything is claimed.
func (d *Decision) admitNew() error {
	if d.record.backend != "" {
		return nil
	}
	return d.admit()
}

// admit refuses what an administrator does not allow in this namespace. What runs stays as it is, as nothing is ordered. It is asked again in
// each pass, so that what was allowed once does not stay so.
func (d *Decision) admit() error {
	err := d.learnTerms()
	if err != nil {
		return err
	}
	if err = d.refusal(); err == nil {
		return nil
	}
	return d.standStill(stall(v1alpha1.ReasonNotAllowed, "%s", err))
}

// learnTerms finds what the namespace may use, and how it is made where it is missing.
func (d *Decision) learnTerms() (err error) {
	switch namespace := d.in.Namespace; {
	case namespace == nil:
		d.Reads.Namespace = true
		return errEnough
	case namespace.Err != nil:
		return fmt.Errorf("read the labels of the namespace: %w", namespace.Err)
	}
	d.namespaceLabels = podSecurity(d.in.Namespace.Labels)
	d.terms, err = d.in.Tenancy.Of(d.in.FleetWorkload.Namespace, d.in.Namespace.Labels)
	return err
}

// podSecurity are the labels by which Kubernetes knows what pods of a namespace may do
// (https://kubernetes.io/docs/concepts/security/pod-security-admission); nil when there are none.
func podSecurity(labels map[string]string) map[string]string {
	var found map[string]string
	for key, value := range labels {
		if !strings.HasPrefix(key, "pod-security.kubernetes.io/") {
			continue
		}
		if found == nil {
			found = map[string]string{}
		}
		found[key] = value
	}
	return found
}

// refusal is the first thing that is not allowed. A backend to which the workload is to move is looked at before a hand-over begins; meanwhile
// its own goes on to serve it.
func (d *Decision) refusal() error {
	fw := d.in.FleetWorkload
	if err := d.terms.Namespace(); err != nil {
		return err
	}
	if fw.Spec.Backend == d.backend || d.handOver != nil {
		if err := d.terms.Backend(fw.Spec.Backend); err != nil {
			return err
		}
	}
	if err := d.terms.Kind(d.work.kind.GVK().GroupKind(), d.work.kind.ClusterScoped); err != nil {
		return err
	}
	if err := d.terms.ServiceAccount(fw.Spec.ServiceAccountName); err != nil {
		return err
	}
	if err := d.terms.Approval(fw.Spec.Approval == v1alpha1.ApprovalPolicyManual); err != nil {
		return err
	}
	if d.spec.Spec.Dependencies == v1alpha1.DependencyPolicyPropagate {
		if err := d.terms.Dependencies(); err != nil {
			return err
		}
	}
	return d.refuseMoved()
}

// refuseMoved refuses clusters of a hand-over that are out of the namespace's reach, on either backend. Those of an ordinary pass are not chosen yet.
func (d *Decision) refuseMoved() error {
	h := d.handOver
	if h == nil {
		return nil
	}
	for _, s := range []handSide{h.source, h.target} {
		if outside := d.outOfReach(s.fleet, s.nameOf, d.record.migration.Clusters); len(outside) > 0 {
			return d.terms.Clusters(outside)
		}
	}
	return nil
}

// outOfReach are the clusters that the namespace may not use, by their names on one backend.
func (d *Decision) outOfReach(
	fleet backends.Fleet, nameOf func(v1alpha1.MigrationClusterStatus) string, clusters []v1alpha1.MigrationClusterStatus,
) (names []string) {
	for _, c := range clusters {
		if cluster, known := fleet.Get(nameOf(c)); known && !d.terms.Reaches(cluster.Labels) {
			names = append(names, cluster.Name)
		}
	}
	return names
}
