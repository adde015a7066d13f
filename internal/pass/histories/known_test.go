package histories

// What histories have found and is not mended yet: while a constant is true the oracle looks away there. Each is to become false, and
// then to go.
const (
	// knownUnlisted: a cluster that its backend does not list for a moment is left at once, and not after half a minute.
	knownUnlisted = false
	// knownEdits: an edit of the placement lets go at once what it does not ask for.
	knownEdits = false
	// knownTogether: an edit of the placement and a change of clusters that one pass reads for the first time together count as the edit's:
	// the record has no labels of before, so that nobody can tell which of the two takes a cluster out. While it is suspended, or
	// handed over, no pass records anything of that, so that what they read is together with what the first one reads afterwards.
	knownTogether = true
	// knownGraceful: with failover Graceful, clusters that an edit takes out may be gone on with, and divided over.
	knownGraceful = false
	// knownUnsettled: spec.suspend has no effect until the backend has chosen clusters.
	knownUnsettled = false
	// knownZero: a cluster that an edit left nothing, and that gets replicas later without another edit, never counts.
	knownZero = false
	// knownFlips: a division by capacity below the number of clusters is decided anew for ever.
	knownFlips = false
	// knownUndisturbed: a hand-over that begins while the source has not brought everything to its members waits for ever.
	knownUndisturbed = false
)
