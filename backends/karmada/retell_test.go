package karmada

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
)

// TestWhenToTellAgain: of what the binding lacks of its policy Karmada is told again half a minute after the last write.
func TestWhenToTellAgain(t *testing.T) {
	s := newSimulation(1)
	d := randomDesired(s.rand, 0)
	s.finish(t, d, "the first change")
	s.settle()
	s.finish(t, d, "the first change once more")
	annotations := s.now.policy.GetAnnotations()
	delete(annotations, annotationToldAgain) // it may have been told on the way
	s.now.policy.SetAnnotations(annotations)
	written := s.now.policy.GetManagedFields()[0].Time.Time
	for name, test := range map[string]struct {
		change func(*workv1alpha2.ResourceBinding)
		missed bool
	}{
		"as the policy says": {func(*workv1alpha2.ResourceBinding) {}, false},
		"its suspension": {func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Suspension = &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{Dispatching: ptr.To(true)}}
		}, true},
		"its placement": {func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement = &policyv1alpha1.Placement{} }, true},
		"what is preserved": {func(b *workv1alpha2.ResourceBinding) {
			b.Spec.PreserveResourcesOnDeletion = ptr.To(!preserves(s.now.policy))
		}, true},
		"it goes": {func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Placement, b.DeletionTimestamp = nil, &metav1.Time{Time: written}
		}, false},
	} {
		live := s.now
		live.binding = s.now.binding.DeepCopy()
		test.change(live.binding)
		wait, is := toTellAgain(live, written.Add(time.Second))
		if is != test.missed || is && wait != tellAgain-time.Second {
			t.Errorf("%s: %v, in %s", name, is, wait)
		}
		if !is {
			continue
		}
		live.policy = toldAgain(live.policy, written.Add(tellAgain))
		if wait, _ := toTellAgain(live, written.Add(tellAgain+time.Second)); wait != tellAgain-time.Second {
			t.Errorf("%s: told, and told again in %s", name, wait)
		}
	}
}
