package interpreter

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// scanner takes the fields of a kind out of the raw JSON of a status, in one pass and without building what is not
// asked for: a fleet of a thousand clusters is read on every change. It reads nested statuses and flat ones alike, as
// readStatus does, and agrees with it (FuzzScan).
type scanner struct {
	root *scanNode
}

// scanNode is an object on the way to fields.
type scanNode struct {
	// children by key.
	children map[string]*scanNode
	// byType are the elements of a list of objects, by their type.
	byType map[string]*scanNode
	// slot of the field that this is, or -1. flat is true at the root, where fields stand under their names.
	slot int
	flat bool
	typ  Type
}

func newNode() *scanNode { return &scanNode{children: map[string]*scanNode{}, slot: -1} }

func newScanner(fields []Field) *scanner {
	s := &scanner{root: newNode()}
	for slot, f := range fields {
		node := s.root
		if f.Name != f.At {
			for _, segment := range f.Path[1:] {
				node = node.child(segment.Key)
				if segment.Type == "" {
					continue
				}
				if node.byType == nil {
					node.byType = map[string]*scanNode{}
				}
				if node.byType[segment.Type] == nil {
					node.byType[segment.Type] = newNode()
				}
				node = node.byType[segment.Type]
			}
			node.slot, node.typ = slot, f.Type
		}
		flat := s.root.child(f.Name)
		flat.slot, flat.typ, flat.flat = slot, f.Type, true
	}
	return s
}

func (n *scanNode) child(key string) *scanNode {
	if n.children[key] == nil {
		n.children[key] = newNode()
	}
	return n.children[key]
}

// maxDepth bounds nesting, as encoding/json does (10000), only lower: no status is so deep.
const maxDepth = 200

var errJSON = errors.New("not valid JSON")

// scan fills values, which has one entry a field. intern may be nil; strings that are in it are not made again.
func (s *scanner) scan(raw []byte, values []value, intern map[string]string) error {
	p := pass{data: raw, values: values, intern: intern}
	p.space()
	if p.peek() != '{' {
		return fmt.Errorf("status: want an object, got %s", p.shape())
	}
	if err := p.object(s.root, 0); err != nil {
		return err
	}
	p.space()
	if p.at != len(p.data) {
		return errJSON
	}
	return nil
}

type pass struct {
	data   []byte
	at     int
	values []value
	flat   uint64
	intern map[string]string
}

func (p *pass) peek() byte {
	if p.at < len(p.data) {
		return p.data[p.at]
	}
	return 0
}

func (p *pass) space() {
	for p.at < len(p.data) {
		switch p.data[p.at] {
		case ' ', '\n', '\t', '\r':
			p.at++
		default:
			return
		}
	}
}

// shape names the value that is next.
func (p *pass) shape() string {
	switch p.peek() {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}

// object reads an object, and its fields that node knows. At a list element the key type is read first, see element.
func (p *pass) object(node *scanNode, depth int) error {
	if depth > maxDepth {
		return errors.New("nested too deeply")
	}
	p.at++ // {
	p.space()
	if p.peek() == '}' {
		p.at++
		return nil
	}
	for {
		p.space()
		key, err := p.key()
		if err != nil {
			return err
		}
		p.space()
		if p.peek() != ':' {
			return errJSON
		}
		p.at++
		p.space()
		var child *scanNode
		if node != nil {
			child = node.children[string(key)]
		}
		if err := p.value(child, depth); err != nil {
			return err
		}
		p.space()
		switch p.peek() {
		case ',':
			p.at++
		case '}':
			p.at++
			return nil
		default:
			return errJSON
		}
	}
}

// value reads one value. Without a node it is skipped.
func (p *pass) value(node *scanNode, depth int) error {
	if node != nil {
		isFlat := node.slot >= 0 && node.flat
		if node.slot >= 0 {
			return p.field(node, isFlat)
		}
		switch c := p.peek(); {
		case c == 'n':
		case node.byType != nil:
			if c != '[' {
				return fmt.Errorf("status: want a list, got %s", p.shape())
			}
			return p.list(node, depth+1)
		case c != '{':
			return fmt.Errorf("status: want an object, got %s", p.shape())
		default:
			return p.object(node, depth+1)
		}
	}
	return p.skip(depth + 1)
}

// field reads the value of a field. A flat value overrules a nested one, whatever their order.
func (p *pass) field(node *scanNode, isFlat bool) error {
	v, err := p.scalar(node.typ)
	if err != nil {
		return fmt.Errorf("status: %w", err)
	}
	bit := uint64(1) << node.slot
	if !isFlat && p.flat&bit != 0 {
		return nil
	}
	if isFlat {
		p.flat |= bit
	}
	p.values[node.slot] = v
	return nil
}

// list reads a list of objects that are told apart by their type. The first one of a type counts.
func (p *pass) list(node *scanNode, depth int) error {
	if depth > maxDepth {
		return errors.New("nested too deeply")
	}
	taken := make([]*scanNode, 0, 8)
	p.at++ // [
	p.space()
	if p.peek() == ']' {
		p.at++
		return nil
	}
	for {
		p.space()
		if p.peek() != '{' {
			return fmt.Errorf("status: want a list of objects, got %s in it", p.shape())
		}
		start := p.at
		kind, err := p.typeOf(depth)
		if err != nil {
			return err
		}
		if element := node.byType[string(kind)]; element != nil && !slices.Contains(taken, element) {
			taken = append(taken, element)
			end := p.at
			p.at = start
			if err := p.object(element, depth+1); err != nil {
				return err
			}
			p.at = end
		}
		p.space()
		switch p.peek() {
		case ',':
			p.at++
		case ']':
			p.at++
			return nil
		default:
			return errJSON
		}
	}
}

// typeOf skips an object and returns its type.
func (p *pass) typeOf(depth int) ([]byte, error) {
	var kind []byte
	p.at++
	p.space()
	if p.peek() == '}' {
		p.at++
		return nil, nil
	}
	for {
		p.space()
		key, err := p.key()
		if err != nil {
			return nil, err
		}
		p.space()
		if p.peek() != ':' {
			return nil, errJSON
		}
		p.at++
		p.space()
		if string(key) == "type" {
			kind = nil
			if p.peek() == '"' {
				if kind, err = p.key(); err != nil {
					return nil, err
				}
			} else if err := p.skip(depth + 1); err != nil {
				return nil, err
			}
		} else if err := p.skip(depth + 1); err != nil {
			return nil, err
		}
		p.space()
		switch p.peek() {
		case ',':
			p.at++
		case '}':
			p.at++
			return kind, nil
		default:
			return nil, errJSON
		}
	}
}

// key reads a string. It points into the data unless there is an escape in it.
func (p *pass) key() ([]byte, error) {
	if p.peek() != '"' {
		return nil, errJSON
	}
	start := p.at
	p.at++
	plain := true
	for p.at < len(p.data) {
		switch c := p.data[p.at]; {
		case c == '"':
			p.at++
			if plain {
				return p.data[start+1 : p.at-1], nil
			}
			var s string
			if err := json.Unmarshal(p.data[start:p.at], &s); err != nil {
				return nil, errJSON
			}
			return []byte(s), nil
		case c == '\\':
			plain = false
			p.at += 2
		case c < ' ':
			return nil, errJSON
		case c >= 0x80:
			plain = false // bytes that are no UTF-8 are replaced, as encoding/json does
			p.at++
		default:
			p.at++
		}
	}
	return nil, errJSON
}

// scalar reads a value of a type; null is absence.
func (p *pass) scalar(t Type) (value, error) {
	switch c := p.peek(); c {
	case '"':
		s, err := p.key()
		switch {
		case err != nil:
			return value{}, err
		case t == TypeString:
			return value{s: p.text(s), set: true}, nil
		}
		return convert("", t)
	case 't', 'f':
		b := c == 't'
		word := "false"
		if b {
			word = "true"
		}
		if err := p.literal(word); err != nil {
			return value{}, err
		}
		return convert(b, t)
	case 'n':
		return value{}, p.literal("null")
	case '{':
		return convert(map[string]any{}, t)
	case '[':
		return convert([]any{}, t)
	default:
		return p.number(t)
	}
}

func (p *pass) text(b []byte) string {
	if s, known := p.intern[string(b)]; known {
		return s
	}
	s := string(b)
	if p.intern != nil && len(p.intern) < maxIntern {
		p.intern[s] = s
	}
	return s
}

// maxIntern bounds the strings that a Fold remembers.
const maxIntern = 4096

func (p *pass) literal(word string) error {
	if len(p.data)-p.at < len(word) || string(p.data[p.at:p.at+len(word)]) != word {
		return errJSON
	}
	p.at += len(word)
	return nil
}

// number reads a number. Whole ones of up to 18 digits need no more than their digits.
func (p *pass) number(t Type) (value, error) {
	start := p.at
	n, digits := int64(0), 0
	for p.at < len(p.data) && p.data[p.at] >= '0' && p.data[p.at] <= '9' && digits < 18 {
		n = n*10 + int64(p.data[p.at]-'0')
		p.at++
		digits++
	}
	if digits > 0 && !numeric(p.peek()) && (digits == 1 || p.data[start] != '0') {
		return convert(n, t)
	}
	p.at = start
	if err := p.skipNumber(); err != nil {
		return value{}, err
	}
	f, err := strconv.ParseFloat(string(p.data[start:p.at]), 64)
	if err != nil || math.IsInf(f, 0) {
		return value{}, errors.New("a number is too large")
	}
	return convert(f, t)
}

func numeric(c byte) bool {
	return (c >= '0' && c <= '9') || c == '.' || c == 'e' || c == 'E' || c == '-' || c == '+'
}

func (p *pass) skipNumber() error {
	start := p.at
	for p.at < len(p.data) && numeric(p.data[p.at]) {
		p.at++
	}
	if p.at == start || !json.Valid(p.data[start:p.at]) {
		return errJSON
	}
	return nil
}

// skip passes over a value.
func (p *pass) skip(depth int) error {
	if depth > maxDepth {
		return errors.New("nested too deeply")
	}
	switch c := p.peek(); c {
	case '"':
		_, err := p.key()
		return err
	case 't':
		return p.literal("true")
	case 'f':
		return p.literal("false")
	case 'n':
		return p.literal("null")
	case '{':
		return p.object(nil, depth)
	case '[':
		p.at++
		p.space()
		if p.peek() == ']' {
			p.at++
			return nil
		}
		for {
			p.space()
			if err := p.skip(depth + 1); err != nil {
				return err
			}
			p.space()
			switch p.peek() {
			case ',':
				p.at++
			case ']':
				p.at++
				return nil
			default:
				return errJSON
			}
		}
	default:
		return p.skipNumber()
	}
}
