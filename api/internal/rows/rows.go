// Package rows writes a list of structs so that gzip finds in it what repeats itself, and reads it again within bounds.
//
// Rows of one list often name the same things again and again, in the same order. So a text stands once, among those of its field. In the
// rows it is "+" where it is new, "-2" where it is the second newest, and "=" with the text itself where that is short. A number is what
// it is more than the one before it of its field. What is left of one row is like the next one.
package rows

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	k8sjson "sigs.k8s.io/json"
)

// MaxBytes bounds what rows say in full, and MaxRows how many there are: a little that is written on purpose may say very much.
const (
	MaxBytes = 8 << 20
	MaxRows  = 20_000
)

// shortText is up to how many bytes a text stands in its row.
const shortText = 6

// How a text begins in a row.
const fresh, known, plainly = "+", "-", "="

// columns are what was met so far.
type columns struct {
	// fields are the texts of each field, in order.
	fields map[string][]string
	// seen are all of them in the order in which they were met, at is where.
	seen []string
	at   map[string]int
	// numbers are the last ones of each field.
	numbers map[string]int64
	// size is how long all is that they have stood for.
	size int
}

// Write writes a line with the texts, then one for each row.
func Write[T any](w io.Writer, rows []T) error {
	t := columns{fields: map[string][]string{}, at: map[string]int{}, numbers: map[string]int64{}}
	out := make([]any, len(rows))
	for i, row := range rows {
		raw, err := json.Marshal(row)
		if err != nil {
			return fmt.Errorf("encode a row: %w", err)
		}
		var tree any
		if err := k8sjson.UnmarshalCaseSensitivePreserveInts(raw, &tree); err != nil {
			return fmt.Errorf("take a row apart: %w", err)
		}
		if out[i], err = walk("", tree, t.shorten, t.subtract); err != nil {
			return err
		}
	}
	to := json.NewEncoder(w)
	for _, line := range append([]any{t.fields}, out...) {
		if err := to.Encode(line); err != nil {
			return fmt.Errorf("write a row: %w", err)
		}
	}
	return nil
}

// Read reads what Write has written, or what somebody else has. It holds no more than one row at a time, and refuses more than MaxRows and
// MaxBytes.
func Read[T any](r io.Reader, each func(T)) error {
	from := json.NewDecoder(r) //nolint:forbidigo // it only finds where values end: numbers are decoded by k8sjson, which keeps them whole
	var raw json.RawMessage
	if err := from.Decode(&raw); err != nil {
		return fmt.Errorf("read its texts: %w", err)
	}
	t := columns{numbers: map[string]int64{}}
	if err := k8sjson.UnmarshalCaseSensitivePreserveInts(raw, &t.fields); err != nil {
		return fmt.Errorf("decode its texts: %w", err)
	}
	for n := 0; ; n++ {
		err := from.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read its rows: %w", err)
		}
		if n == MaxRows {
			return fmt.Errorf("it has more than %d rows", MaxRows)
		}
		var row T
		if err := t.row(raw, &row); err != nil {
			return fmt.Errorf("decode its rows: %w", err)
		}
		each(row)
	}
}

func (t *columns) row(raw []byte, row any) error {
	var tree any
	if err := k8sjson.UnmarshalCaseSensitivePreserveInts(raw, &tree); err != nil {
		return fmt.Errorf("take it apart: %w", err)
	}
	tree, err := walk("", tree, t.restore, t.add)
	if err != nil {
		return err
	}
	if raw, err = json.Marshal(tree); err != nil {
		return fmt.Errorf("put it together: %w", err)
	}
	if err := k8sjson.UnmarshalCaseSensitivePreserveInts(raw, row); err != nil {
		return fmt.Errorf("put it together: %w", err)
	}
	return nil
}

// walk returns a value with every text and every number in it put another way, in the order of fields' names.
func walk(field string, v any, put func(field, text string) (string, error), count func(field string, n int64) int64) (any, error) {
	switch v := v.(type) {
	case string:
		return put(field, v)
	case int64:
		return count(field, v), nil
	case []any:
		for i := range v {
			var err error
			if v[i], err = walk(field, v[i], put, count); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			var err error
			if v[key], err = walk(field+"."+key, v[key], put, count); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

func (t *columns) shorten(field, text string) (string, error) {
	if len(text) <= shortText {
		return plainly + text, nil
	}
	if i, is := t.at[text]; is {
		return known + strconv.Itoa(len(t.seen)-i), nil
	}
	t.at[text], t.seen, t.fields[field] = len(t.seen), append(t.seen, text), append(t.fields[field], text)
	return fresh, nil
}

func (t *columns) subtract(field string, n int64) int64 {
	more := n - t.numbers[field]
	t.numbers[field] = n
	return more
}

func (t *columns) add(field string, more int64) int64 {
	t.numbers[field] += more
	return t.numbers[field]
}

func (t *columns) restore(field, text string) (string, error) {
	if short, is := strings.CutPrefix(text, plainly); is {
		return short, nil
	}
	if text == fresh && len(t.fields[field]) > 0 {
		text = t.fields[field][0]
		t.fields[field], t.seen = t.fields[field][1:], append(t.seen, text)
	} else {
		back, err := strconv.Atoi(strings.TrimPrefix(text, known))
		if err != nil || back < 1 || back > len(t.seen) {
			return "", fmt.Errorf("%s: there is no text %.20q", field, text)
		}
		text = t.seen[len(t.seen)-back]
	}
	if t.size += len(text); t.size > MaxBytes {
		return "", fmt.Errorf("it says more than %d bytes", MaxBytes)
	}
	return text, nil
}
