// Package brief keeps messages within the room that an object has for them, and that a reader has.
package brief

import (
	"fmt"
	"strings"
)

// more stands at the end of a message that was cut.
const more = "..."

// Cut keeps a message within so many bytes.
func Cut(message string, most int) string {
	if len(message) <= most {
		return message
	}
	return strings.ToValidUTF8(message[:max(0, most-len(more))], "") + more
}

// Note fits a message into the note of an Event, or an entry of the status, which API servers bound to 1 KiB. What is not text they refuse, however short.
func Note(message string) string { return Cut(strings.ToValidUTF8(message, ""), 1000) }

// Fit returns messages that have no more than most bytes together. The first ones stay as they are, as far as half of the room goes; the
// other half is shared by all. What fits is not changed.
func Fit(messages []string, most int) []string {
	out, total := make([]string, len(messages)), 0
	for _, m := range messages {
		total += len(m)
	}
	share := most
	if total > most {
		share = most / 2 / len(messages)
	}
	for i, m := range messages {
		out[i] = Cut(m, max(share, most-share*(len(messages)-1-i)))
		most -= len(out[i])
	}
	return out
}

// List names the first five, as many as a reader takes in at a glance.
func List(names []string) string { return First(names, 5) }

// First names the first so many of a list, and tells how many more there are.
func First(names []string, most int) string { return join(names, most, ", ", " ") }

// Clauses is First for what is longer than a name.
func Clauses(clauses []string, most int) string { return join(clauses, most, "; ", "; ") }

func join(all []string, most int, between, last string) string {
	if more := len(all) - most; more > 0 {
		return fmt.Sprintf("%s%sand %d more", strings.Join(all[:most], between), last, more)
	}
	return strings.Join(all, between)
}
