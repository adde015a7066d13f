// Package companions is what drivers share about the objects that travel with workloads (R13): who uses one, whose it
// is, and what may be said of it. Each driver carries a companion of one cluster in a backend object of its own, a
// companion work, on which an annotation lists the FleetWorkloads that use it. That list is the only position there is: it is
// read from caches and written with the resource version that was read.
package companions

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/brief"
)

// Marks of a companion work.
const (
	// Label is on every companion work; its value is Own or Shared.
	Label = "fleetworkload.io/companion"
	// AnnotationUsers lists who uses it.
	AnnotationUsers = "fleetworkload.io/used-by"
	// AnnotationObservers lists the UIDs of those users that own nothing of it (R14).
	AnnotationObservers = "fleetworkload.io/observed-by"
	// AnnotationElsewhere lists the UIDs of FleetWorkloads that are no users and may need it all the same: from another
	// backend, or because they were given up as they are. Then it is given up too and not deleted.
	AnnotationElsewhere = "fleetworkload.io/needed-by"
	// AnnotationContent is the hash of the companion as it was rendered: manifests are atomic to API servers, and
	// webhooks change them.
	AnnotationContent = "fleetworkload.io/content-hash"

	// Own is a companion of one FleetWorkload alone.
	Own = "own"
	// Shared is a companion that several may use.
	Shared = "shared"
)

// Kind is the value of Label for a companion.
func Kind(c backends.Companion) string {
	if c.Shared {
		return Shared
	}
	return Own
}

// IsCompanionWork tells companion works from what delivers workloads.
func IsCompanionWork(obj metav1.Object) bool { return obj.GetLabels()[Label] != "" }

// IsShared tells whether a companion work's companion is one that several may use.
func IsShared(obj metav1.Object) bool { return obj.GetLabels()[Label] == Shared }

// Whose says for a person who uses a companion work.
func Whose(companionWork metav1.Object) string {
	if IsShared(companionWork) {
		return "FleetWorkloads whose pods refer to it"
	}
	return "FleetWorkload " + companionWork.GetAnnotations()[v1alpha1.AnnotationOwner]
}

// UID is the value of the label fleetworkload.io/uid for a companion of the FleetWorkload, on its companion work and on members.
func UID(c backends.Companion, key backends.Key) string {
	if c.Shared {
		return backends.SharedUID
	}
	return string(key.UID)
}

// Users are the FleetWorkloads that use a companion work, by UID.
type Users map[types.UID]types.NamespacedName

// ReadUsers reads the annotation. What cannot be read is nobody.
func ReadUsers(annotations map[string]string) Users {
	users := Users{}
	for _, entry := range strings.Split(annotations[AnnotationUsers], ",") {
		uid, name, ok := strings.Cut(entry, "=")
		namespace, name, named := strings.Cut(name, "/")
		if ok && named {
			users[types.UID(uid)] = types.NamespacedName{Namespace: namespace, Name: name}
		}
	}
	return users
}

// String is the annotation's value.
func (u Users) String() string {
	entries := make([]string, 0, len(u))
	for uid, name := range u {
		entries = append(entries, string(uid)+"="+name.String())
	}
	slices.Sort(entries)
	return strings.Join(entries, ",")
}

// With returns the users and one more.
func (u Users) With(key backends.Key) Users {
	more := maps.Clone(u)
	more[key.UID] = key.NamespacedName
	return more
}

// Without returns the users but for one.
func (u Users) Without(key backends.Key) Users {
	fewer := maps.Clone(u)
	delete(fewer, key.UID)
	return fewer
}

// UIDs lists the users' UIDs, for an index.
func (u Users) UIDs() []string {
	uids := make([]string, 0, len(u))
	for uid := range u {
		uids = append(uids, string(uid))
	}
	return uids
}

// Need is who needs what a companion work delivers.
type Need struct {
	Users Users
	// observers and elsewhere are sorted.
	observers, elsewhere []types.UID
}

// ReadNeed reads the annotations.
func ReadNeed(annotations map[string]string) Need {
	return Need{
		Users:     ReadUsers(annotations),
		observers: readUIDs(annotations[AnnotationObservers]), elsewhere: readUIDs(annotations[AnnotationElsewhere]),
	}
}

func readUIDs(list string) []types.UID {
	var uids []types.UID
	for _, uid := range strings.Split(list, ",") {
		if uid != "" {
			uids = append(uids, types.UID(uid))
		}
	}
	return uids
}

// Write puts the need into annotations.
func (n Need) Write(annotations map[string]string) {
	annotations[AnnotationUsers] = n.Users.String()
	for key, uids := range map[string][]types.UID{AnnotationObservers: n.observers, AnnotationElsewhere: n.elsewhere} {
		delete(annotations, key)
		if len(uids) > 0 {
			list := make([]string, len(uids))
			for i, uid := range uids {
				list[i] = string(uid)
			}
			annotations[key] = strings.Join(list, ",")
		}
	}
}

// Owning is the need with one more user, who owns what the companion work delivers. Others need it elsewhere.
func (n Need) Owning(key backends.Key, elsewhere []types.UID) Need {
	n.Users = n.Users.With(key)
	n.observers = without(n.observers, key.UID)
	all := slices.Concat(n.elsewhere, elsewhere)
	all = slices.DeleteFunc(all, func(uid types.UID) bool { _, uses := n.Users[uid]; return uses })
	slices.Sort(all)
	n.elsewhere = slices.Compact(all)
	return n
}

// Observing is the need with one more user, who owns nothing of it.
func (n Need) Observing(key backends.Key) Need {
	n.Users = n.Users.With(key)
	n.elsewhere = without(n.elsewhere, key.UID)
	n.observers = append(without(n.observers, key.UID), key.UID)
	slices.Sort(n.observers)
	return n
}

// Leaving is the need without one user. One that is given up as it is may need it for ever.
func (n Need) Leaving(key backends.Key, policy v1alpha1.DeletionPolicy) Need {
	n.Users, n.observers = n.Users.Without(key), without(n.observers, key.UID)
	if policy == v1alpha1.DeletionPolicyOrphan {
		n.elsewhere = append(without(n.elsewhere, key.UID), key.UID)
		slices.Sort(n.elsewhere)
	}
	return n
}

func without(uids []types.UID, uid types.UID) []types.UID {
	return slices.DeleteFunc(slices.Clone(uids), func(each types.UID) bool { return each == uid })
}

// Owners are the users that own it, but for one, sorted.
func (n Need) Owners(but types.UID) []types.UID {
	var owners []types.UID
	for uid := range n.Users {
		if uid != but && !slices.Contains(n.observers, uid) {
			owners = append(owners, uid)
		}
	}
	slices.Sort(owners)
	return owners
}

// Owned tells whether any user owns it.
func (n Need) Owned() bool { return len(n.Owners("")) > 0 }

// Observes tells whether a user owns nothing of it.
func (n Need) Observes(uid types.UID) bool { return slices.Contains(n.observers, uid) }

// Elsewhere tells whether anybody who is no user may need it.
func (n Need) Elsewhere() bool { return len(n.elsewhere) > 0 }

// Changed lists those to notify when a companion work has changed: everybody when anything but its list of users has, else those who came or went.
// A thousand FleetWorkloads may share one companion work.
func Changed(before, now metav1.Object, sameStatus bool) []types.NamespacedName {
	former, users := ReadUsers(before.GetAnnotations()), ReadUsers(now.GetAnnotations())
	owner := types.UID(now.GetLabels()[v1alpha1.LabelUID])
	_, owned := former[owner]
	_, owns := users[owner]
	return toTell(former, users, owned != owns || !sameStatus || before.GetGeneration() != now.GetGeneration() ||
		before.GetDeletionTimestamp().IsZero() != now.GetDeletionTimestamp().IsZero() || !maps.Equal(before.GetLabels(), now.GetLabels()))
}

func toTell(before, now Users, otherwise bool) []types.NamespacedName {
	told := map[types.NamespacedName]bool{}
	for uid, name := range now {
		if _, stayed := before[uid]; otherwise || !stayed {
			told[name] = true
		}
	}
	for uid, name := range before {
		if _, stays := now[uid]; !stays {
			told[name] = true
		}
	}
	return slices.Collect(maps.Keys(told))
}

// Serve adds to a cluster's report for whom else the backend goes on with a shared companion.
func Serve(o *backends.ClusterObservation, companionWork metav1.Object, title string, key backends.Key) {
	others := ReadNeed(companionWork.GetAnnotations()).Owners(key.UID)
	if !IsShared(companionWork) || len(others) == 0 {
		return
	}
	if o.Serves == nil {
		o.Serves = map[string][]types.UID{}
	}
	o.Serves[title] = others
}

// Notes are those on companions of which clusters are known by title, such as ForeignNote's.
func Notes(by map[string][]string, note func(title string, clusters []string) string) []string {
	var all []string
	for _, title := range slices.Sorted(maps.Keys(by)) {
		all = append(all, note(title, slices.Sorted(slices.Values(by[title]))))
	}
	return all
}

// Hash of what a companion work carries.
func Hash(parts ...any) string {
	// Everything hashed here came out of JSON, so it can be written as JSON.
	data, err := json.Marshal(parts)
	if err != nil {
		panic(err)
	}
	return hashed(data)
}

// HashJSON is the Hash of one value that is written as JSON already, in pieces.
func HashJSON(pieces ...[]byte) string {
	return hashed(slices.Concat([][]byte{{'['}}, pieces, [][]byte{{']'}})...)
}

func hashed(pieces ...[]byte) string {
	sum := sha256.New()
	for _, piece := range pieces {
		sum.Write(piece)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}

// Title names a companion for a person.
func Title(obj *unstructured.Unstructured) string { return obj.GetKind() + " " + obj.GetName() }

// Policy is what becomes of a companion on a member when it goes. Claims are never deleted: their data would be.
func Policy(kind string, policy v1alpha1.DeletionPolicy) v1alpha1.DeletionPolicy {
	if kind == "PersistentVolumeClaim" {
		return v1alpha1.DeletionPolicyOrphan
	}
	return policy
}

// Say is a message about a companion that may be shown: of a Secret nobody's words are passed on, for they may quote it.
func Say(kind, message string) string {
	if kind == "Secret" && message != "" {
		return "it was refused; the reason is not repeated here, since it may quote the Secret"
	}
	return message
}

// Explain classifies an error of writing a companion work. field is to blame when the content is refused.
func Explain(op string, obj *unstructured.Unstructured, shared bool, err error) error {
	if err == nil || apierrors.IsConflict(err) {
		return err
	}
	var typed *backends.Error
	if !errors.As(backends.Classify(op, err), &typed) {
		return fmt.Errorf("%s: %w", op, discreet(obj, err))
	}
	explained := *typed
	if explained.Code == backends.CodeRejected {
		explained.Field, explained.Value = field(shared), Title(obj)
		explained.Remedy = "correct the object; if it is too large for the backend, split it"
	}
	if explained.Err != nil {
		explained.Err = discreet(obj, explained.Err)
	}
	return &explained
}

func field(shared bool) string {
	if shared {
		return "spec.dependencies"
	}
	return "spec.companions"
}

// discreet keeps of an error about a Secret no more than its reason.
func discreet(obj *unstructured.Unstructured, err error) error {
	if obj.GetKind() != "Secret" {
		return err
	}
	return fmt.Errorf("the API server answered %s", apierrors.ReasonForError(err))
}

// NameConflict says that somebody else has what a companion needs.
func NameConflict(obj *unstructured.Unstructured, whose string) error {
	return &backends.Error{
		Code: backends.CodeNameConflict, Field: "spec.companions", Value: Title(obj),
		Message: "the backend carries an object of this kind and name already, for " + whose,
		Remedy:  "give the companion another name, or delete the other object",
	}
}

// ForeignNote tells that a shared companion is somebody else's on clusters.
func ForeignNote(title string, clusters []string) string {
	return fmt.Sprintf("note: %s on %s is not the operator's: it is used as it is and not updated; delete it there to have it shipped",
		title, brief.List(clusters))
}

// ElsewhereNote tells that a shared companion is another backend's on clusters.
func ElsewhereNote(title string, clusters []string) string {
	return fmt.Sprintf("note: %s on %s is delivered by Karmada: it is used as it is until no workload on Karmada needs it there",
		title, brief.List(clusters))
}

// ForeignMessage tells that a companion is somebody else's on a cluster.
func ForeignMessage(title string) string {
	return title + " exists already and is not this FleetWorkload's: set conflictPolicy Adopt to take it over, or remove it"
}
