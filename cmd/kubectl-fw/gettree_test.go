package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
)

// travelling is between two backends, with what pods need.
func travelling(t *testing.T) *v1alpha1.FleetWorkload {
	t.Helper()
	fw := fixture(t)
	fw.Spec.Backend, fw.Spec.Dependencies, fw.Status.Truncated = "ocm", v1alpha1.DependencyPolicyPropagate, nil
	fw.Status.Placement = &v1alpha1.PlacementRecord{Companions: []v1alpha1.WorkloadReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: "web-settings"}, {APIVersion: "v1", Kind: "Service", Name: "web"},
	}}
	fw.Status.Migration = &v1alpha1.MigrationStatus{From: "karmada", To: "ocm", Phase: v1alpha1.MigrationPhaseHandingOver, Clusters: []v1alpha1.MigrationClusterStatus{
		{Name: "m1", TargetName: "member1", Phase: v1alpha1.MigrationPhaseVerifying}, {Name: "member2", Phase: v1alpha1.MigrationPhaseHandingOver},
		{Name: "member3", Phase: v1alpha1.MigrationPhaseShadowing},
	}}
	fw.Status.Clusters[2].GivenUp, fw.Status.Clusters[3].Applied = metav1.ConditionTrue, metav1.ConditionFalse
	fw.Status.Clusters[3].Message = strings.Repeat("the cluster refuses it ", 9)
	return fw
}

// crowded is on many clusters of two backends.
func crowded(t *testing.T) *v1alpha1.FleetWorkload {
	t.Helper()
	fw := travelling(t)
	for i := range 40 {
		c := v1alpha1.ClusterStatus{Name: fmt.Sprintf("c%02d", i), Desired: ptr.To[int32](1), Health: v1alpha1.HealthHealthy, Applied: metav1.ConditionTrue}
		fw.Status.Clusters = append(fw.Status.Clusters, c)
	}
	return fw
}

// lengthy has names that are as long as they may be.
func lengthy(t *testing.T) *v1alpha1.FleetWorkload {
	t.Helper()
	fw := travelling(t)
	for i := range fw.Status.Clusters {
		fw.Status.Clusters[i].Name = fmt.Sprintf("%s-%d", strings.Repeat("c", 61), i)
	}
	fw.Status.Placement.Companions[0].Name = strings.Repeat("settings-", 28) + "1"
	return fw
}

func TestTree(t *testing.T) {
	for name, test := range map[string]struct {
		fw   *v1alpha1.FleetWorkload
		wide bool
	}{
		"tree/one-backend.golden":       {fw: fixture(t)},
		"tree/between-backends.golden":  {fw: travelling(t)},
		"tree/long-names.golden":        {fw: lengthy(t)},
		"tree/wide.golden":              {fw: travelling(t), wide: true},
		"tree/many-clusters.golden":     {fw: crowded(t)},
		"tree/not-looked-at-yet.golden": {fw: &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: v1alpha1.FleetWorkloadSpec{Backend: "ocm"}}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := writeTree(&out, test.fw, noon, test.wide); err != nil {
				t.Fatal(err)
			}
			compareGolden(t, name, out.String())
			for line := range strings.Lines(out.String()) {
				if n := utf8.RuneCountInString(strings.TrimSpace(line)); n > treeColumns && !test.wide {
					t.Errorf("%d columns: %s", n, line)
				}
			}
			if n := strings.Count(out.String(), "\n"); n > 24 && !test.wide {
				t.Errorf("it is %d lines long", n)
			}
		})
	}
}

// Nothing is left out of a wide tree.
func TestWideTreeHasAllClusters(t *testing.T) {
	var out bytes.Buffer
	if err := writeTree(&out, crowded(t), noon, true); err != nil {
		t.Fatal(err)
	}
	for _, c := range crowded(t).Status.Clusters {
		if !strings.Contains(out.String(), "─ "+c.Name+" ") {
			t.Errorf("%s is not in\n%s", c.Name, out.String())
		}
	}
}
