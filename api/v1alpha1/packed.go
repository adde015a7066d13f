package v1alpha1

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	k8sjson "sigs.k8s.io/json"

	"github.com/fleetworkload/fleetworkload/api/internal/rows"
)

// mostPlain is how many bytes of JSON the records of clusters may have before they are packed: together with all else a status then stays
// far from what a request to the API server, or an object in etcd, may have.
const mostPlain = 96 << 10

// mostStored is what a whole status may have where that can be had without losing a record.
const mostStored = 224 << 10

// leastRows are shown all the same.
const leastRows = 10

// packedRow is what the three lists have at one index. They name the same clusters, mostly in the same order, so that a row repeats itself.
type packedRow struct {
	// share is of placement.clusters.
	// +optional
	Share *ClusterShare `json:"share,omitempty"`

	// migration is of migration.clusters.
	// +optional
	Migration *MigrationClusterStatus `json:"migration,omitempty"`

	// last is of migration.history[0].clusters.
	// +optional
	Last *MigrationClusterStatus `json:"last,omitempty"`
}

// unpackedStatus is a status that is decoded as it stands.
type unpackedStatus FleetWorkloadStatus

// UnmarshalJSON implements json.Unmarshaler: whoever reads a status has the lists, packed or not. What cannot be unpacked does not decode:
// records from which a hand-over reads where it stands must not look empty.
func (s *FleetWorkloadStatus) UnmarshalJSON(raw []byte) error {
	s.Packed = ""
	if err := k8sjson.UnmarshalCaseSensitivePreserveInts(raw, (*unpackedStatus)(s)); err != nil {
		return err //nolint:wrapcheck // it is the decoder's own
	}
	if s.Packed == "" {
		return nil
	}
	if err := s.unpack(); err != nil {
		return fmt.Errorf("unpack status.packed: %w", err)
	}
	return nil
}

// Pack returns the status as it is to be written: with the records of clusters packed when they are long, and without rows for which there is no room.
// s is not changed.
func (s *FleetWorkloadStatus) Pack() (*FleetWorkloadStatus, error) {
	out := *s
	out.Packed = ""
	shares, migration, last := s.records()
	plain, err := json.Marshal([]any{shares, migration, last})
	if err != nil {
		return nil, fmt.Errorf("measure the records of clusters: %w", err)
	}
	if len(plain) <= mostPlain {
		return &out, out.shorten()
	}
	all := make([]packedRow, max(len(shares), len(migration), len(last)))
	if len(plain) > rows.MaxBytes || len(all) > rows.MaxRows {
		return nil, fmt.Errorf("pack the records of clusters: %d of them in %d bytes are too much, %d in %d can be read again",
			len(all), len(plain), rows.MaxRows, rows.MaxBytes)
	}
	for i := range all {
		all[i] = packedRow{at(shares, i), at(migration, i), at(last, i)}
	}
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // that level is one
	if err := errors.Join(rows.Write(w, all), w.Close()); err != nil {
		return nil, fmt.Errorf("pack the records of clusters: %w", err)
	}
	out.Packed = base64.StdEncoding.EncodeToString(packed.Bytes())
	stored := out.Bare()
	return stored, stored.shorten()
}

// shorten takes rows off a status that is too long: of clusters those first that need attention least, then what is shown of a proposal, which can be
// made again, and last what is shown of a change that waits. They are counted, like those for which there is never room; no record is touched.
func (s *FleetWorkloadStatus) shorten() error {
	raw, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("measure the status: %w", err)
	}
	over := len(raw) - mostStored
	errs := []error{takeOff(&over, &s.Clusters, &s.Truncated, leastRows)}
	if s.Proposal != nil {
		p := *s.Proposal
		errs = append(errs, takeOff(&over, &p.Companions, &p.CompanionsTruncated, 0), takeOff(&over, &p.Clusters, &p.Truncated, 0))
		s.Proposal = &p
	}
	if s.Change != nil {
		c := *s.Change
		errs = append(errs, takeOff(&over, &c.Companions, &c.CompanionsTruncated, 0), takeOff(&over, &c.Clusters, &c.Truncated, 0))
		s.Change = &c
	}
	return errors.Join(errs...)
}

// takeOff takes rows off the end of a list for as long as a status is over its size, and counts them in more. The first least rows stay.
func takeOff[T any](over *int, list *[]T, more **int32, least int) error {
	cut := int32(0)
	for *over > 0 && len(*list) > least {
		end := len(*list) - 1
		row, err := json.Marshal((*list)[end])
		if err != nil {
			return fmt.Errorf("measure a row: %w", err)
		}
		*list, *over, cut = (*list)[:end], *over-len(row)-1, cut+1
	}
	if cut > 0 {
		if *more != nil {
			cut += **more
		}
		*more = &cut
	}
	return nil
}

// Bare returns a status that was read as the API server has it: without the lists that are packed. s is not changed.
func (s *FleetWorkloadStatus) Bare() *FleetWorkloadStatus {
	out := s.DeepCopy()
	if s.Packed != "" {
		out.setRecords(nil, nil, nil)
	}
	return out
}

func (s *FleetWorkloadStatus) unpack() error {
	r, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(s.Packed)))
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	var shares []ClusterShare
	var migration, last []MigrationClusterStatus
	bounded := &io.LimitedReader{R: r, N: rows.MaxBytes}
	err = rows.Read(bounded, func(row packedRow) {
		shares, migration, last = add(shares, row.Share), add(migration, row.Migration), add(last, row.Last)
	})
	if bounded.N <= 0 {
		return fmt.Errorf("it unpacks to more than %d bytes", rows.MaxBytes)
	}
	if err != nil {
		return err
	}
	if len(shares) > 0 && s.Placement == nil || len(migration)+len(last) > 0 && s.Migration == nil ||
		len(last) > 0 && len(s.Migration.History) == 0 {
		return errors.New("it has records of what the status does not have")
	}
	s.setRecords(shares, migration, last)
	return nil
}

// records are the lists with an entry for each cluster, of the newest finished migration the last one.
func (s *FleetWorkloadStatus) records() (shares []ClusterShare, migration, last []MigrationClusterStatus) {
	if s.Placement != nil {
		shares = s.Placement.Clusters
	}
	if m := s.Migration; m != nil {
		migration = m.Clusters
		if len(m.History) > 0 {
			last = m.History[0].Clusters
		}
	}
	return shares, migration, last
}

func (s *FleetWorkloadStatus) setRecords(shares []ClusterShare, migration, last []MigrationClusterStatus) {
	if s.Placement != nil {
		s.Placement.Clusters = shares
	}
	if m := s.Migration; m != nil {
		m.Clusters = migration
		if len(m.History) > 0 {
			m.History[0].Clusters = last
		}
	}
}

func at[T any](list []T, i int) *T {
	if i < len(list) {
		return &list[i]
	}
	return nil
}

func add[T any](list []T, item *T) []T {
	if item == nil {
		return list
	}
	return append(list, *item)
}
