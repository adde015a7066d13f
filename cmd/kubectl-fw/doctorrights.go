package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/fleetworkload/fleetworkload/config/rbac"
	"github.com/fleetworkload/fleetworkload/internal/config"
)

// right is one that the shipped roles grant. Resource has its subresource after a slash.
type right struct{ group, resource, verb string }

// rightsOf are all that rules grant, in their order.
func rightsOf(rules []rbacv1.PolicyRule) (all []right) {
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all = append(all, right{group, resource, verb})
				}
			}
		}
	}
	return all
}

// lesser are rights without which the operator works all the same.
type lesser struct {
	backend config.Type
	group   string
	// resources and verbs; all when empty.
	resources, verbs []string
	// unused tells whether the configuration has no use for them: then nobody is asked.
	unused func(config.Backend) bool
	// without says what does not work without them.
	without string
}

func everUsed(config.Backend) bool { return false }

func lesserRights() []lesser {
	none := func(b config.Backend) bool {
		return b.Karmada != nil && b.Karmada.Interpreters == config.InterpretersNone
	}
	unbound := func(b config.Backend) bool { return b.OCM == nil || len(b.OCM.ClusterSets) == 0 }
	unshipped := func(b config.Backend) bool { return b.OCM == nil || !b.OCM.ShipDefinitions }
	write := []string{"create", "patch", "delete"}
	karmada, hub := config.TypeKarmada, config.TypeOCM
	return []lesser{
		{karmada, "", []string{"events"}, nil, everUsed, "FleetWorkloads do not say why Karmada fails to carry them out"},
		{karmada, "work.karmada.io", []string{"works"}, write, everUsed, "FleetWorkloads with companions or dependencies are refused"},
		{karmada, "config.karmada.io", nil, nil, none, "Karmada is not taught what the operator knows of kinds"},
		{karmada, "apps", nil, nil, everUsed, "FleetWorkloads of these kinds are refused"},
		{karmada, "batch", nil, nil, everUsed, "FleetWorkloads of these kinds are refused"},
		{karmada, "apps.kruise.io", nil, nil, everUsed, "FleetWorkloads of these kinds are refused"},
		{karmada, "argoproj.io", nil, nil, everUsed, "FleetWorkloads of these kinds are refused"},
		{hub, "work.open-cluster-management.io", []string{"manifestworks"}, []string{"execute-as"}, everUsed, "FleetWorkloads with backendOptions.ocm.executor are refused"},
		{hub, "cluster.open-cluster-management.io", []string{"managedclustersets/bind"}, nil, unbound, "cluster sets are not bound"},
		{hub, "cluster.open-cluster-management.io", []string{"managedclustersetbindings"}, write, unbound, "cluster sets are not bound"},
		{hub, "apiextensions.k8s.io", nil, nil, unshipped, "definitions are not shipped"},
	}
}

func (l lesser) has(backend config.Type, r right) bool {
	among := func(list []string, word string) bool { return len(list) == 0 || slices.Contains(list, word) }
	return l.backend == backend && l.group == r.group && among(l.resources, r.resource) && among(l.verbs, r.verb)
}

// lesserOf is the one that a right is among; nil where the operator does not work without the right.
func lesserOf(backend config.Type, r right) *lesser {
	all := lesserRights()
	if i := slices.IndexFunc(all, func(l lesser) bool { return l.has(backend, r) }); i >= 0 {
		return &all[i]
	}
	return nil
}

// asker tells whether the operator has a right on an API server.
type asker func(context.Context, authorizationv1.ResourceAttributes) (bool, error)

// lookAtRights asks the backend for each right of the role that is shipped for it.
func (d backendDoctor) lookAtRights(ctx context.Context, api endpoint) []finding {
	folder := strings.ToLower(string(d.Type))
	rules, err := rbac.Rules(folder)
	if err != nil {
		return []finding{unread(aspectRights, "the operator's rights", err)}
	}
	wanted := slices.DeleteFunc(rightsOf(rules), func(r right) bool {
		l := lesserOf(d.Type, r)
		return l != nil && l.unused(d.Backend)
	})
	reviews, err := authorizationclient.NewForConfigAndClient(api.cfg, api.client)
	if err != nil {
		return []finding{unread(aspectRights, "the operator's rights", err)}
	}
	ask := ofMyself(reviews)
	if d.Connection.InCluster != nil { // there the connection is that of who runs this
		ask = ofAnother(reviews, d.account)
	} else {
		granted, err := grantedTo(ctx, reviews)
		if err != nil {
			return []finding{unread(aspectRights, "the operator's rights", err)}
		}
		wanted = slices.DeleteFunc(wanted, func(r right) bool { return covers(granted, r) })
	}
	missing, err := denied(ctx, wanted, ask, authorizationv1.ResourceAttributes{})
	if err != nil {
		return []finding{unread(aspectRights, "the operator's rights", err)}
	}
	return judgeRights(d.Type, "config/backends/"+folder, missing)
}

// grantedTo are the rules of who asks, in one answer. It has those of the namespace that is asked about, too, which the role has none of.
func grantedTo(ctx context.Context, reviews authorizationclient.AuthorizationV1Interface) ([]authorizationv1.ResourceRule, error) {
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: metav1.NamespaceDefault}}
	answer, err := reviews.SelfSubjectRulesReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return answer.Status.ResourceRules, nil
}

// covers tells whether rules have the right for all names.
func covers(rules []authorizationv1.ResourceRule, r right) bool {
	among := func(list []string, word string) bool {
		return slices.Contains(list, "*") || slices.Contains(list, word)
	}
	return slices.ContainsFunc(rules, func(rule authorizationv1.ResourceRule) bool {
		return len(rule.ResourceNames) == 0 && among(rule.APIGroups, r.group) && among(rule.Resources, r.resource) && among(rule.Verbs, r.verb)
	})
}

func ofMyself(reviews authorizationclient.AuthorizationV1Interface) asker {
	return func(ctx context.Context, attributes authorizationv1.ResourceAttributes) (bool, error) {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes}}
		answer, err := reviews.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		return answer.Status.Allowed, nil
	}
}

func ofAnother(reviews authorizationclient.AuthorizationV1Interface, account string) asker {
	return func(ctx context.Context, attributes authorizationv1.ResourceAttributes) (bool, error) {
		namespace, _, _ := strings.Cut(account, "/")
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			ResourceAttributes: &attributes, User: "system:serviceaccount:" + strings.ReplaceAll(account, "/", ":"),
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
		}}
		answer, err := reviews.SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		return answer.Status.Allowed, nil
	}
}

// denied are those of the rights that are not granted, in the namespace and for the name of on. Rules are not all that may grant one, so each is asked
// for, some at a time.
func denied(ctx context.Context, rights []right, ask asker, on authorizationv1.ResourceAttributes) ([]right, error) {
	const some = 10
	no, errs := make([]bool, len(rights)), make([]error, len(rights))
	slots := make(chan struct{}, some)
	var group sync.WaitGroup
	for i, r := range rights {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			resource, subresource, _ := strings.Cut(r.resource, "/")
			asked := on
			asked.Group, asked.Resource, asked.Subresource, asked.Verb = r.group, resource, subresource, r.verb
			allowed, err := ask(ctx, asked)
			no[i], errs[i] = !allowed, err
		})
	}
	group.Wait()
	var missing []right
	for i, r := range rights {
		if errs[i] != nil {
			return nil, errs[i]
		}
		if no[i] {
			missing = append(missing, r)
		}
	}
	return missing, nil
}

// judgeRights tells first what the operator does not work without, then what else is missing, by what comes of it.
func judgeRights(backend config.Type, folder string, missing []right) (found []finding) {
	var needed []right
	by, order := map[string][]right{}, []string(nil)
	for _, r := range missing {
		l := lesserOf(backend, r)
		if l == nil {
			needed = append(needed, r)
			continue
		}
		if by[l.without] == nil {
			order = append(order, l.without)
		}
		by[l.without] = append(by[l.without], r)
	}
	grant := do("grant it as an administrator of the backend: kubectl apply -k %s", folder)
	if len(needed) > 0 {
		found = append(found, ill(gradeProblem, aspectRights, grant, "the operator may not %s", phrase(needed)))
	}
	for _, without := range order {
		found = append(found, ill(gradeNote, aspectRights, grant, "the operator may not %s: %s", phrase(by[without]), without))
	}
	if len(found) == 0 {
		return []finding{well(aspectRights, "the operator has the rights of %s", folder)}
	}
	return found
}

// phrase names rights, those on a resource together.
func phrase(rights []right) string {
	verbs, order := map[string][]string{}, []string(nil)
	for _, r := range rights {
		name := strings.TrimSuffix(r.resource+"."+r.group, ".")
		if verbs[name] == nil {
			order = append(order, name)
		}
		if !slices.Contains(verbs[name], r.verb) {
			verbs[name] = append(verbs[name], r.verb)
		}
	}
	var words []string
	for _, name := range order {
		words = append(words, fmt.Sprintf("%s %s", strings.Join(verbs[name], ", "), name))
	}
	return strings.Join(words, "; ")
}
