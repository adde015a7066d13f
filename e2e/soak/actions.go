// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"regexp"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/e2e/proxy"
	"github.com/fleetworkload/fleetworkload/e2e/soak/history"
	"github.com/fleetworkload/fleetworkload/e2e/soak/manifest"
	"github.com/fleetworkload/fleetworkload/hack/install"
)

// deed is a part of an action. It is tried until it succeeds.
type deed = func(ctx context.Context, a history.Action) error

// deeds are what each verb takes, in order. From the deed begin on, the judge expects the action's effect.
func (s *soak) deeds() map[history.Verb][]deed {
	return map[history.Verb][]deed{
		history.Apply:    {s.begin, s.apply, s.awaitAdopted},
		history.Delete:   {s.becomesOrphan, s.begin, s.delete, s.awaitGone},
		history.Clear:    {s.begin, s.clear},
		history.Confirm:  {s.confirm},
		history.Touch:    {s.begin, s.touch},
		history.Label:    {s.begin, s.label},
		history.Taint:    {s.begin, s.taint},
		history.Untaint:  {s.begin, s.untaint},
		history.Lose:     {s.begin, s.signalled(syscall.SIGKILL, false)},
		history.Return:   {s.begin, s.started},
		history.Leave:    {s.begin, s.leave, s.wipe},
		history.Join:     {s.begin, s.join},
		history.Kill:     {s.begin, s.signalled(syscall.SIGKILL, true)},
		history.Stop:     {s.begin, s.signalled(syscall.SIGSTOP, true)},
		history.Continue: {s.begin, s.signalled(syscall.SIGCONT, true)},
		history.End:      {s.begin, s.signalled(syscall.SIGKILL, false)},
		history.Start:    {s.begin, s.started},
		history.Cut:      {s.begin, s.cut},
		history.Mend:     {s.begin, s.cut},
		history.Unlease:  {s.begin, s.unlease},
	}
}

// carryOut has an action done in its lane.
func (s *soak) carryOut(a history.Action) {
	s.out.action(a)
	for _, do := range s.deeds()[a.Verb] {
		s.lanes.add(a.Lane(), task{what: a.String(), do: func(ctx context.Context) error { return do(ctx, a) }})
	}
}

func (s *soak) begin(_ context.Context, a history.Action) error {
	s.judge.begin(a)
	return nil
}

// apply makes the spec the FleetWorkload's.
func (s *soak) apply(ctx context.Context, a history.Action) error {
	want, err := manifest.FleetWorkload(a.Workload, *a.Spec)
	if err != nil {
		return err
	}
	fw := &v1alpha1.FleetWorkload{}
	switch err := s.hub().Get(ctx, client.ObjectKeyFromObject(want), fw); {
	case apierrors.IsNotFound(err):
		fw = want
		err = s.hub().Create(ctx, fw)
		if err != nil {
			return fmt.Errorf("create %s: %w", a.Workload, err)
		}
	case err != nil:
		return fmt.Errorf("read %s: %w", a.Workload, err)
	default:
		fw.Spec = want.Spec
		if err := s.hub().Update(ctx, fw); err != nil {
			return fmt.Errorf("update %s: %w", a.Workload, err)
		}
	}
	s.judge.carried(a.Workload, string(fw.UID), fw.Generation)
	return nil
}

// becomesOrphan has a FleetWorkload that is to be abandoned run as asked, and say that it orphans.
func (s *soak) becomesOrphan(ctx context.Context, a history.Action) error {
	if !a.Spec.Orphan {
		return nil
	}
	fw, err := s.read(ctx, a.Workload)
	if err != nil || fw.Spec.DeletionPolicy == v1alpha1.DeletionPolicyOrphan {
		return err
	}
	if differs := s.judge.differs(a.Workload); !isReady(fw) || differs != "" {
		return fmt.Errorf("%s does not run as asked: %s %s", a.Workload, differs, conditions(fw))
	}
	fw.Spec.DeletionPolicy = v1alpha1.DeletionPolicyOrphan
	if err := s.hub().Update(ctx, fw); err != nil {
		return fmt.Errorf("have %s orphan: %w", a.Workload, err)
	}
	return nil
}

func (s *soak) read(ctx context.Context, k history.Key) (*v1alpha1.FleetWorkload, error) {
	fw := &v1alpha1.FleetWorkload{}
	if err := s.hub().Get(ctx, types.NamespacedName(k), fw); err != nil {
		return nil, fmt.Errorf("read %s: %w", k, err)
	}
	return fw, nil
}

func (s *soak) delete(ctx context.Context, a history.Action) error {
	fw := &v1alpha1.FleetWorkload{ObjectMeta: metav1.ObjectMeta{Namespace: a.Workload.Namespace, Name: a.Workload.Name}}
	if err := client.IgnoreNotFound(s.hub().Delete(ctx, fw)); err != nil {
		return fmt.Errorf("delete %s: %w", a.Workload, err)
	}
	return nil
}

func (s *soak) awaitGone(ctx context.Context, a history.Action) error {
	fw, err := s.read(ctx, a.Workload)
	if apierrors.IsNotFound(err) {
		s.judge.gone(a.Workload)
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%s is still there: %s", a.Workload, conditions(fw))
	}
	return err
}

// clear deletes on the members what a FleetWorkload has left there.
func (s *soak) clear(ctx context.Context, a history.Action) error {
	facts := s.judge.facts()
	left := ""
	for _, name := range facts.Names() {
		if !facts[name].Joined {
			continue
		}
		for _, obj := range leftObjects(a.Workload, a.Spec.Kind) {
			err := s.clusters[name].Delete(ctx, obj, client.PropagationPolicy(metav1.DeletePropagationBackground))
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("delete %s %s on %s: %w", obj.GetKind(), a.Workload, name, err)
			}
			if err == nil {
				left += " " + obj.GetKind() + " on " + name
			}
		}
	}
	if left != "" {
		return fmt.Errorf("%s was still there:%s", a.Workload, left)
	}
	s.judge.gone(a.Workload)
	return nil
}

// leftObjects are the workload and its companions, by name.
func leftObjects(k history.Key, kind history.Kind) []*unstructured.Unstructured {
	workload := &unstructured.Unstructured{}
	workload.SetGroupVersionKind(manifest.GVKs[kind])
	workload.SetName(k.Name)
	all := []*unstructured.Unstructured{workload}
	for _, c := range manifest.Companions(k) {
		all = append(all, &unstructured.Unstructured{Object: c})
	}
	for _, obj := range all {
		obj.SetNamespace(k.Namespace)
	}
	return all
}

// confirmation is in the message of a removal that is held.
var confirmation = regexp.MustCompile(regexp.QuoteMeta(v1alpha1.AnnotationConfirmRemoval) + `=(\S+)`)

// confirm lets a removal proceed as the message says. When nothing is held after all there is nothing to confirm.
func (s *soak) confirm(ctx context.Context, a history.Action) error {
	fw, err := s.read(ctx, a.Workload)
	if err != nil {
		return err
	}
	if isReady(fw) {
		s.out.say("nothing of %s is held", a.Workload)
		return nil
	}
	stalled := meta.FindStatusCondition(fw.Status.Conditions, v1alpha1.ConditionStalled)
	if stalled == nil || stalled.Reason != v1alpha1.ReasonRemovalHeld {
		return fmt.Errorf("no removal of %s is held: %s", a.Workload, conditions(fw))
	}
	token := confirmation.FindStringSubmatch(stalled.Message)
	if token == nil {
		return fmt.Errorf("%s does not say how to confirm: %s", a.Workload, stalled.Message)
	}
	s.judge.begin(a)
	before := fw.DeepCopy()
	metav1.SetMetaDataAnnotation(&fw.ObjectMeta, v1alpha1.AnnotationConfirmRemoval, token[1])
	if err := s.hub().Patch(ctx, fw, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("confirm for %s: %w", a.Workload, err)
	}
	s.judge.carried(a.Workload, string(fw.UID), fw.Generation)
	return nil
}

func (s *soak) touch(ctx context.Context, a history.Action) error {
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.Workload.Namespace, Name: manifest.Settings}}
	patch := fmt.Sprintf(`{"data":{"at":%q}}`, stamp())
	if err := s.hub().Patch(ctx, settings, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		return fmt.Errorf("change the settings of %s: %w", a.Workload.Namespace, err)
	}
	return nil
}

// signalled sends a signal to an operator or a component. A cluster is lost with its API server.
func (s *soak) signalled(sig syscall.Signal, startAgain bool) deed {
	return func(_ context.Context, a history.Action) error {
		name := processOf(a)
		if one, is := s.operators.all[name]; is {
			one.allow(startAgain)
			return one.signal(sig)
		}
		s.processes.allow(name, startAgain)
		return s.processes.signal(name, sig)
	}
}

func (s *soak) started(_ context.Context, a history.Action) error {
	name := processOf(a)
	if one, is := s.operators.all[name]; is {
		one.allow(true)
		return nil
	}
	s.processes.allow(name, true)
	return s.processes.awaitRunning(name)
}

func processOf(a history.Action) string {
	if a.Cluster != "" {
		return a.Cluster + "-kube-apiserver"
	}
	return a.Process
}

func (s *soak) cut(_ context.Context, a history.Action) error {
	mode := proxy.Forward
	if a.Verb == history.Cut {
		mode = cutModes[a.Mode]
	}
	s.operators.cut(a.Process, mode)
	return nil
}

func (s *soak) unlease(ctx context.Context, _ history.Action) error {
	lease := &unstructured.Unstructured{}
	lease.SetGroupVersionKind(leaseGVK)
	lease.SetNamespace(install.Namespace)
	lease.SetName(leaseName)
	if err := client.IgnoreNotFound(s.hub().Delete(ctx, lease)); err != nil {
		return fmt.Errorf("delete the operators' lease: %w", err)
	}
	return nil
}
