// Package migration is the hand-over of a running workload from one backend to another: a state machine without I/O. It
// is asked on every pass, gets its own record and what both backends report, and returns the new record and what each
// backend is to do.
//
// It rests on one rule. Per cluster the record says only whose the cluster is to be. Who may write follows from that and
// from the other side's lowest object: a backend gets the right to write only while the other one's has confirmed that it
// neither writes nor would delete. So a record that is read late, or a pass that is cut off, can delay a hand-over and
// never make two owners.
package migration

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
	"github.com/fleetworkload/fleetworkload/internal/brief"
)

// Report is what one backend says of the workload on one cluster.
type Report struct {
	// Presence is how the backend has the workload there; PresenceAbsent and PresenceUnknown when it has nothing.
	Presence backends.Presence
	// Rendered is true when that object holds the manifest that is wanted now.
	Rendered bool
	// Current is true when the manifest is applied, and what follows is about it and from a cluster that can be reached.
	Current bool
	// Asked are the replicas that the backend asks for; nil for kinds without.
	Asked *int32
	// Marked is true while what the other backend has left on the member object is on its way out.
	Marked bool
	// Message is what the backend says when the manifest is not applied, for a person.
	Message string
	// Evidence is what runs. Its fields are empty when they are not known.
	Evidence v1alpha1.MigrationEvidence
}

// unknown tells whether the backend does not know the cluster, and has nothing there.
func (r Report) unknown() bool {
	return r.Presence == backends.PresenceUnknown || r.Presence == backends.PresenceNamed
}

// present tells whether the backend has an object for the cluster, or would have one as soon as it is back.
func (r Report) present() bool {
	return r.Presence != backends.PresenceUnknown && r.Presence != backends.PresenceAbsent
}

// harmless tells whether the side is no danger to another owner: it has nothing there, or has confirmed that it neither writes nor
// would delete.
func (r Report) harmless() bool { return !r.present() || r.Presence.Released() }

// Pair is what both sides say of one cluster.
type Pair struct {
	Source, Target Report
}

// gone tells whether no backend knows the cluster any more: nothing is awaited of it.
func (p Pair) gone() bool { return p.Source.unknown() && p.Target.unknown() }

// Wave is one step of the migration.
type Wave struct {
	// Soak is how long all clusters of the wave must pass before the next step.
	Soak time.Duration
	// Manual waves wait for a person after their soak.
	Manual bool
}

// Input is the world as one pass finds it.
type Input struct {
	Now time.Time
	// Forward is true while the spec asks for the target.
	Forward bool
	// Unavailable names what cannot be read. While it is not empty nothing is decided and nothing done.
	Unavailable string
	// Clusters are the reports by the source's names, of all clusters of the record.
	Clusters map[string]Pair
	// Waves are never empty; clusters of the record have the numbers of theirs, from 1.
	Waves []Wave
	// Timeout is how long a wave may take, soak not counted.
	Timeout time.Duration
	// Pause leaves a failed wave as it is instead of rolling it back.
	Pause bool
	// Approval is the value of the annotation by which a person lets the migration go on.
	Approval string
	// SourceGone and TargetGone are true when that backend has nothing of the workload.
	SourceGone, TargetGone bool
}

// Act is what one backend is to do.
type Act string

const (
	// ActNothing leaves it alone.
	ActNothing Act = ""
	// ActApply gives its driver the clusters with their modes.
	ActApply Act = "Apply"
	// ActRelease has its driver remove everything and delete no member object.
	ActRelease Act = "Release"
)

// Modes are what the two backends may do on one cluster.
type Modes struct {
	Source, Target backends.Mode
}

// Orders are what the backends are to do, the source first.
type Orders struct {
	Source, Target Act
	// Clusters are the modes by the source's names.
	Clusters map[string]Modes
	// TargetOwns is true from the moment on when the target is the workload's backend.
	TargetOwns bool
	// Ended is true when the migration is over; only its history is left in the record.
	Ended bool
	// Overdue says what keeps the first wave from beginning after its time is up; the migration waits on.
	Overdue string
	// RequeueAfter is after what time the answer may be another one although nothing has happened; 0 when it is not.
	RequeueAfter time.Duration
}

// Decide takes the record one step further and says what follows from it. The record is to be written before the orders
// are carried out. The old one is not changed.
func Decide(old v1alpha1.MigrationStatus, in Input) (v1alpha1.MigrationStatus, Orders) {
	d := &decision{rec: *old.DeepCopy(), in: in}
	if in.Unavailable != "" {
		d.freeze()
		return d.rec, Orders{TargetOwns: d.rec.Phase == v1alpha1.MigrationPhaseReleasing}
	}
	d.unfreeze()
	d.turnRound()
	d.step()
	orders := d.orders()
	fitMessages(d.rec.Clusters)
	return d.rec, orders
}

// maxMessages is how many bytes the messages of all clusters have together, of each that several have once. They are for people.
const maxMessages = 16 << 10

func fitMessages(clusters []v1alpha1.MigrationClusterStatus) {
	var different []string
	place := map[string]int{}
	for _, c := range clusters {
		if _, seen := place[c.Message]; !seen {
			place[c.Message] = len(different)
			different = append(different, c.Message)
		}
	}
	fitting := brief.Fit(different, maxMessages)
	for i, c := range clusters {
		clusters[i].Message = fitting[place[c.Message]]
	}
}

// decision is one pass of the machine.
type decision struct {
	rec          v1alpha1.MigrationStatus
	in           Input
	ended        bool
	overdue      string
	requeueAfter time.Duration
}

func (d *decision) freeze() {
	if d.rec.FrozenSince == nil {
		d.rec.FrozenSince = at(d.in.Now)
	}
}

// unfreeze leaves the time out in which nothing could be seen: the wave's clock is moved on, and its soak begins anew.
func (d *decision) unfreeze() {
	if d.rec.FrozenSince == nil {
		return
	}
	if d.rec.WaveStartedAt != nil {
		d.rec.WaveStartedAt = at(d.rec.WaveStartedAt.Add(d.in.Now.Sub(d.rec.FrozenSince.Time)))
	}
	d.rec.FrozenSince, d.rec.PassingSince = nil, nil
}

// turnRound follows a change of mind. Once the source is being released there is no way back but another migration.
func (d *decision) turnRound() {
	back := d.rec.Phase == v1alpha1.MigrationPhaseRollingBack && d.rec.Failure == ""
	switch {
	case d.rec.Phase == v1alpha1.MigrationPhaseReleasing || d.rec.Phase == v1alpha1.MigrationPhaseValidating:
	case !d.in.Forward && !back:
		d.enter(v1alpha1.MigrationPhaseRollingBack)
		d.rec.Failure = ""
		d.setAll(v1alpha1.MigrationPhaseRollingBack)
	case d.in.Forward && back:
		d.enter(v1alpha1.MigrationPhaseShadowing)
		d.rec.Wave, d.rec.WaveStartedAt = nil, at(d.in.Now)
	}
}

func (d *decision) step() {
	switch d.rec.Phase {
	case v1alpha1.MigrationPhaseValidating:
		d.validate()
	case v1alpha1.MigrationPhaseShadowing:
		d.observe()
	case v1alpha1.MigrationPhaseHandingOver:
		d.handOver()
	case v1alpha1.MigrationPhaseVerifying:
		d.verify()
	case v1alpha1.MigrationPhaseReleasing:
		if d.in.SourceGone && !d.marked(func(p Pair) Report { return p.Target }) {
			d.end(v1alpha1.MigrationPhaseCompleted)
		}
	case v1alpha1.MigrationPhaseRollingBack:
		d.rollBack()
	case v1alpha1.MigrationPhaseRolledBack:
		d.waitForRetry()
	case v1alpha1.MigrationPhaseCompleted: // in the history only
	}
}

// validate begins, unless the spec has changed its mind. Until then nothing has been done that would have to be undone.
func (d *decision) validate() {
	if !d.in.Forward {
		d.ended, d.rec = true, v1alpha1.MigrationStatus{History: d.rec.History}
		return
	}
	d.enter(v1alpha1.MigrationPhaseShadowing)
	d.rec.WaveStartedAt = at(d.in.Now)
	d.setAll(v1alpha1.MigrationPhaseShadowing)
}

// observe waits until the target holds, for every cluster, what the source has there, and speaks of the same object.
func (d *decision) observe() {
	ready := true
	for i := range d.rec.Clusters {
		c := &d.rec.Clusters[i]
		c.Phase = v1alpha1.MigrationPhaseShadowing
		p := d.in.Clusters[c.Name]
		c.Message = compare(p)
		ready = ready && c.Message == ""
	}
	if ready {
		d.begin(d.after(-1))
		return
	}
	if d.rec.WaveStartedAt == nil {
		d.rec.WaveStartedAt = at(d.in.Now)
	}
	if left := d.in.Timeout - d.in.Now.Sub(d.rec.WaveStartedAt.Time); left > 0 {
		d.requeueAfter = left
		return
	}
	for _, c := range d.rec.Clusters {
		if c.Message != "" {
			d.overdue = fmt.Sprintf("cluster %s: not within %s: %s", c.Name, d.in.Timeout, c.Message)
			return
		}
	}
}

// compare says what is missing before a cluster can be handed over; nothing when it can.
func compare(p Pair) string {
	switch {
	case p.gone():
		return ""
	case p.Target.unknown():
		return "the new backend does not know the cluster any more"
	case !p.Source.unknown() && (!p.Source.Current || !p.Source.Rendered):
		return "the present backend does not report on the present manifest"
	case p.Target.Presence.Removing():
		return "the new backend still removes what it had there"
	case !p.Target.present() || !p.Target.Rendered:
		return "the new backend has no object with this manifest yet"
	case !p.Target.Presence.Released():
		return because("the new backend has not confirmed that it does not write", p.Target.Message)
	case differ(p.Source.Evidence.UID, p.Target.Evidence.UID):
		return fmt.Sprintf("the backends speak of different objects: %s and %s", p.Source.Evidence.UID, p.Target.Evidence.UID)
	}
	return ""
}

// because adds what a backend says, within what a message may have.
func because(what, why string) string {
	if why == "" {
		return what
	}
	const most = 800
	return what + ": " + strings.ToValidUTF8(why[:min(len(why), most)], "")
}

func differ(a, b string) bool { return a != "" && b != "" && a != b }

// Join returns the record with more clusters, of which neither backend has anything. They are the source's until the wave behind all others, or behind
// the one under way, hands them over; where all clusters are one backend's, or are to be, they are too. The old record is not changed.
func Join(old v1alpha1.MigrationStatus, clusters []v1alpha1.MigrationClusterStatus, waves []Wave) v1alpha1.MigrationStatus {
	rec, wave, phase := *old.DeepCopy(), int32(len(waves)), v1alpha1.MigrationPhaseShadowing
	switch {
	case rec.Phase == v1alpha1.MigrationPhaseReleasing, rec.Phase == v1alpha1.MigrationPhaseRollingBack && rec.Failure == "":
		phase = rec.Phase
	case rec.Wave != nil:
		wave = max(wave, *rec.Wave+1)
	}
	for _, c := range clusters {
		c.Phase, c.Wave = phase, &wave
		rec.Clusters = append(rec.Clusters, c)
	}
	slices.SortFunc(rec.Clusters, func(a, b v1alpha1.MigrationClusterStatus) int { return strings.Compare(a.Name, b.Name) })
	return rec
}

// begin starts a wave: its clusters become the target's as soon as the source has released them.
func (d *decision) begin(wave int32) {
	d.enter(v1alpha1.MigrationPhaseHandingOver)
	d.rec.Wave, d.rec.WaveStartedAt = &wave, at(d.in.Now)
	for _, c := range d.wave() {
		c.Phase, c.Message, c.After = v1alpha1.MigrationPhaseHandingOver, "", nil
		c.Before = evidence(d.in.Clusters[c.Name].Source)
	}
}

// handOver waits until the target runs the clusters of the wave as they ran before.
func (d *decision) handOver() {
	if d.failed() {
		return
	}
	done := true
	for _, c := range d.wave() {
		p := d.in.Clusters[c.Name]
		if why := replaced(c, p); why != "" {
			d.fail(c, why)
			return
		}
		c.Message = missing(c, p)
		if c.Message != "" {
			c.Phase, done = v1alpha1.MigrationPhaseHandingOver, false
			continue
		}
		c.Phase, c.After = v1alpha1.MigrationPhaseVerifying, evidence(p.Target)
	}
	switch {
	case done:
		d.rec.Phase, d.rec.PassingSince = v1alpha1.MigrationPhaseVerifying, at(d.in.Now)
		d.verify()
	default:
		d.failLate()
	}
}

func evidence(r Report) *v1alpha1.MigrationEvidence {
	r.Evidence.PodRevision = shortRevision(r.Evidence.PodRevision)
	return &r.Evidence
}

// shortRevision keeps what tells one revision of pods from another. Its name begins with the workload's, which may be long.
func shortRevision(revision string) string {
	const most, begins = 63, 48
	if len(revision) <= most {
		return revision
	}
	sum := sha256.Sum256([]byte(revision))
	return brief.Cut(revision, begins) + hex.EncodeToString(sum[:6])
}

// missing says what a cluster that is handed over still lacks.
func missing(c *v1alpha1.MigrationClusterStatus, p Pair) string {
	switch {
	case p.gone():
		return ""
	case !p.Source.harmless():
		return "the present backend has not confirmed that it has stopped"
	case !p.Target.Rendered || !p.Target.Current || p.Target.Presence.Released():
		return because("the new backend has not taken it over", p.Target.Message)
	case sicker(c, p):
		return fmt.Sprintf("it is %s", p.Target.Evidence.Health)
	default:
		return fewer(c, p)
	}
}

// sicker tells whether the cluster is worse off than before. What was on its way, such as a Job, or ill, may stay so.
func sicker(c *v1alpha1.MigrationClusterStatus, p Pair) bool {
	was := v1alpha1.HealthHealthy
	if c.Before != nil {
		was = c.Before.Health
	}
	return illness(p.Target.Evidence.Health) > illness(was)
}

// illness orders what kinds show of their health; one that shows nothing is not known to be ill.
func illness(h v1alpha1.Health) int {
	switch h {
	case v1alpha1.HealthDegraded:
		return 2
	case v1alpha1.HealthProgressing:
		return 1
	default:
		return 0
	}
}

// fewer says that fewer pods are ready than before, unless fewer are wanted.
func fewer(c *v1alpha1.MigrationClusterStatus, p Pair) string {
	if c.Before == nil || c.Before.Ready == nil || p.Target.Evidence.Ready == nil {
		return ""
	}
	want := *c.Before.Ready
	if p.Target.Asked != nil {
		want = min(want, *p.Target.Asked)
	}
	if got := *p.Target.Evidence.Ready; got < want {
		return fmt.Sprintf("%d pods are ready; before it were %d", got, *c.Before.Ready)
	}
	return ""
}

// replaced says that what runs is not what ran: that can only get worse.
func replaced(c *v1alpha1.MigrationClusterStatus, p Pair) string {
	if c.Before == nil || !p.Target.Current {
		return ""
	}
	was, is := evidence(Report{Evidence: *c.Before}), evidence(p.Target)
	switch {
	case differ(was.UID, is.UID):
		return fmt.Sprintf("the object was %s and is %s", was.UID, is.UID)
	case differ(was.PodRevision, is.PodRevision):
		return fmt.Sprintf("its pods' revision was %s and is %s", was.PodRevision, is.PodRevision)
	}
	return ""
}

// verify holds the wave under observation for its soak, and then goes on.
func (d *decision) verify() {
	if d.failed() {
		return
	}
	n := *d.rec.Wave
	wave := WaveOf(d.in.Waves, n)
	if d.rec.PassingSince == nil {
		d.rec.PassingSince = at(d.in.Now)
	}
	soaking := d.in.Now.Sub(d.rec.PassingSince.Time)
	complete := true
	for _, c := range d.wave() {
		broken, waits := d.check(c, wave.Soak, soaking)
		if broken != "" {
			d.fail(c, broken)
			return
		}
		if c.Message = waits; waits != "" {
			complete = false
			continue
		}
		c.After = evidence(d.in.Clusters[c.Name].Target)
	}
	if !complete {
		d.requeueAfter = wave.Soak + d.in.Timeout - soaking
		return
	}
	if left := wave.Soak - soaking; left > 0 {
		d.requeueAfter = left
		return
	}
	if wave.Manual && !d.approved() {
		return
	}
	d.rec.Approval = ""
	if next := d.after(n); next > n {
		d.begin(next)
		return
	}
	d.enter(v1alpha1.MigrationPhaseReleasing)
	d.setAll(v1alpha1.MigrationPhaseReleasing)
}

// check says what is broken on a cluster of the wave, or what is neither good nor bad and waited for: pods come and go, and reports
// are missing for a moment. That has a time limit until the wave has passed once; then a person watches it.
func (d *decision) check(c *v1alpha1.MigrationClusterStatus, soak, soaking time.Duration) (broken, waits string) {
	p := d.in.Clusters[c.Name]
	waits = missing(c, p)
	switch why := replaced(c, p); {
	case why != "":
		return why, ""
	case waits == "" || !p.Source.harmless():
	case !p.Target.Current || !p.Target.Rendered:
		waits = "the new backend does not report on it"
	case sicker(c, p) && p.Target.Evidence.Health == v1alpha1.HealthDegraded:
		return waits, ""
	}
	if waits != "" && d.rec.Approval == "" && soaking >= soak+d.in.Timeout {
		return fmt.Sprintf("not within %s after its soak: %s", d.in.Timeout, waits), ""
	}
	return "", waits
}

// after is the number of the next wave that has clusters; wave itself when there is none.
func (d *decision) after(wave int32) int32 {
	next := wave
	for _, c := range d.rec.Clusters {
		if n := number(c); n > wave && (next == wave || n < next) {
			next = n
		}
	}
	return next
}

// failed tells whether the wave has failed and was left as it is. A person may have it tried again.
func (d *decision) failed() bool {
	if d.rec.Failure == "" {
		return false
	}
	if !d.approved() {
		return true
	}
	d.begin(*d.rec.Wave)
	return false
}

// failLate fails the wave when its time is up.
func (d *decision) failLate() {
	left := d.in.Timeout - d.in.Now.Sub(d.rec.WaveStartedAt.Time)
	if left > 0 {
		d.requeueAfter = left
		return
	}
	for _, c := range d.wave() {
		if c.Message != "" {
			d.fail(c, fmt.Sprintf("not within %s: %s", d.in.Timeout, c.Message))
			return
		}
	}
}

// fail has a wave go back, or stay as it is until a person decides.
func (d *decision) fail(c *v1alpha1.MigrationClusterStatus, why string) {
	d.rec.Failure, d.rec.PassingSince = fmt.Sprintf("cluster %s: %s", c.Name, why), nil
	d.rec.Approval = "" // what was asked for was to let it go on
	c.Message = why
	if d.in.Pause {
		return
	}
	d.rec.Phase = v1alpha1.MigrationPhaseRollingBack
	for _, c := range d.wave() {
		c.Phase = v1alpha1.MigrationPhaseRollingBack
	}
}

// rollBack waits until the source has its clusters back. A whole migration that goes back ends when the target has
// nothing left; a wave waits for a person.
func (d *decision) rollBack() {
	whole := d.rec.Failure == ""
	done := true
	for i := range d.rec.Clusters {
		c := &d.rec.Clusters[i]
		if !whole && c.Phase != v1alpha1.MigrationPhaseRollingBack {
			continue
		}
		p := d.in.Clusters[c.Name]
		back := p.Target.harmless() && (p.Source.unknown() || p.Source.Current && !p.Source.Presence.Released())
		done = done && (back || p.gone())
	}
	switch {
	case !done:
	case !whole:
		d.rec.Phase = v1alpha1.MigrationPhaseRolledBack
		for _, c := range d.wave() {
			c.Phase = v1alpha1.MigrationPhaseRolledBack
		}
	case d.in.TargetGone && !d.marked(func(p Pair) Report { return p.Source }):
		d.end(v1alpha1.MigrationPhaseRolledBack)
	default:
		d.setAll(v1alpha1.MigrationPhaseRolledBack)
	}
}

// marked tells whether anything of the old owner is left on a member object, or may be: what is not known to be gone is there.
func (d *decision) marked(side func(Pair) Report) bool {
	return slices.ContainsFunc(d.rec.Clusters, func(c v1alpha1.MigrationClusterStatus) bool {
		r := side(d.in.Clusters[c.Name])
		return !r.unknown() && (r.Marked || !r.Current)
	})
}

// waitForRetry begins a wave that went back again once a person says so.
func (d *decision) waitForRetry() {
	if d.approved() {
		d.begin(*d.rec.Wave)
	}
}

// approved tells whether a person has let this very step go on, and asks for it otherwise. What is asked for once stays the
// same until the step is another one, however the wave's clock is moved on: an approval may be given while the migration is
// frozen.
func (d *decision) approved() bool {
	step := "pass"
	if d.rec.Failure != "" {
		step = "retry"
	}
	prefix := fmt.Sprintf("%s-wave-%d-", step, *d.rec.Wave)
	if !strings.HasPrefix(d.rec.Approval, prefix) {
		d.rec.Approval = prefix + d.began()
	}
	if d.in.Approval == d.rec.Approval {
		d.rec.Approval = ""
		return true
	}
	return false
}

// began tells one try of a wave from the others.
func (d *decision) began() string {
	if d.rec.WaveStartedAt == nil {
		return "0"
	}
	return strconv.FormatInt(d.rec.WaveStartedAt.Unix(), 10)
}

// enter changes the phase of the whole.
func (d *decision) enter(phase v1alpha1.MigrationPhase) {
	d.rec.Phase, d.rec.PassingSince, d.rec.Approval, d.rec.Problems, d.rec.Failure = phase, nil, "", nil, ""
}

func (d *decision) setAll(phase v1alpha1.MigrationPhase) {
	for i := range d.rec.Clusters {
		d.rec.Clusters[i].Phase, d.rec.Clusters[i].Message = phase, ""
	}
}

// wave are the clusters of the present wave.
func (d *decision) wave() []*v1alpha1.MigrationClusterStatus {
	var all []*v1alpha1.MigrationClusterStatus
	for i := range d.rec.Clusters {
		if c := &d.rec.Clusters[i]; d.rec.Wave != nil && number(*c) == *d.rec.Wave {
			all = append(all, c)
		}
	}
	return all
}

func number(c v1alpha1.MigrationClusterStatus) int32 {
	if c.Wave == nil {
		return 0
	}
	return *c.Wave
}

// maxHistory is how many finished migrations are remembered.
const maxHistory = 10

func (d *decision) end(phase v1alpha1.MigrationPhase) {
	record := v1alpha1.MigrationRecord{From: d.rec.From, To: d.rec.To, Phase: phase, FinishedAt: *at(d.in.Now), Clusters: d.rec.Clusters}
	for i := range record.Clusters {
		record.Clusters[i].Phase, record.Clusters[i].Message = phase, ""
	}
	history := append([]v1alpha1.MigrationRecord{record}, d.rec.History...)
	if len(history) > 1 {
		history[1].Clusters = nil // one fleet's evidence is enough for a status
	}
	d.ended, d.rec = true, v1alpha1.MigrationStatus{History: history[:min(len(history), maxHistory)]}
}

func at(t time.Time) *metav1.Time {
	out := metav1.NewTime(t).Rfc3339Copy()
	return &out
}

// orders are what the backends are to do now.
func (d *decision) orders() Orders {
	o := Orders{Ended: d.ended, Overdue: d.overdue, RequeueAfter: d.requeueAfter}
	switch d.rec.Phase {
	case v1alpha1.MigrationPhaseShadowing, v1alpha1.MigrationPhaseHandingOver, v1alpha1.MigrationPhaseVerifying,
		v1alpha1.MigrationPhaseRolledBack:
		o.Source, o.Target = ActApply, ActApply
	case v1alpha1.MigrationPhaseRollingBack:
		o.Source, o.Target = ActApply, ActApply
		if d.rec.Failure == "" && d.all(v1alpha1.MigrationPhaseRolledBack) {
			o.Target = ActRelease
		}
	case v1alpha1.MigrationPhaseReleasing:
		o.Source, o.Target, o.TargetOwns = ActRelease, ActApply, true
	default:
		return o
	}
	if d.undisturbed() {
		o.Source = ActNothing
	}
	o.Clusters = make(map[string]Modes, len(d.rec.Clusters))
	for _, c := range d.rec.Clusters {
		o.Clusters[c.Name] = modes(c, d.in.Clusters[c.Name])
	}
	return o
}

// undisturbed tells whether the source has nothing to do while the target begins to observe. Until that is confirmed the
// source has no right to begin writing, and none need be taken from it: it writes already, and the target never did. A change that
// the source is not through with it carries on with.
func (d *decision) undisturbed() bool {
	return d.rec.Phase == v1alpha1.MigrationPhaseShadowing && !slices.ContainsFunc(d.rec.Clusters,
		func(c v1alpha1.MigrationClusterStatus) bool {
			source := d.in.Clusters[c.Name].Source
			return c.Before != nil || !source.Rendered || !source.Current
		})
}

func (d *decision) all(phase v1alpha1.MigrationPhase) bool {
	return !slices.ContainsFunc(d.rec.Clusters, func(c v1alpha1.MigrationClusterStatus) bool { return c.Phase != phase })
}

// IsTargets tells whose a cluster is to be in a phase: the target's, or else the source's.
func IsTargets(phase v1alpha1.MigrationPhase) bool {
	switch phase {
	case v1alpha1.MigrationPhaseHandingOver, v1alpha1.MigrationPhaseVerifying, v1alpha1.MigrationPhaseReleasing:
		return true
	default:
		return false
	}
}

// modes give the right to write to one side at most: to the one whose the cluster is to be, once the other has released it.
func modes(c v1alpha1.MigrationClusterStatus, p Pair) Modes {
	m := Modes{Source: backends.ModeObserve, Target: backends.ModeObserve}
	switch {
	case IsTargets(c.Phase) && p.Source.harmless():
		m.Target = backends.ModeAdopt
	case IsTargets(c.Phase):
	case c.Before == nil && c.Phase == v1alpha1.MigrationPhaseShadowing:
		m.Source = backends.ModeOwn // the target never had it
	case p.Target.harmless() && c.Before != nil:
		m.Source = backends.ModeAdopt // the target may have owned it
	case p.Target.harmless():
		m.Source = backends.ModeOwn
	}
	return m
}
