package controllers

import "github.com/fleetworkload/fleetworkload/internal/pass"

// countUnread counts the reports that a pass could not read.
func (r *Reconciler) countUnread(d *pass.Decision) {
	for _, u := range d.Unread() {
		r.Unread.Failed(u.Backend, u.Kind.Group, u.Kind.Kind, string(u.Reason))
	}
}
