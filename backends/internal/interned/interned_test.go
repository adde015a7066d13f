package interned

import (
	"reflect"
	"testing"
)

func number(n int) map[string]any {
	return map[string]any{"n": int64(n), "list": []any{"a", map[string]any{"b": true}}}
}

func same(a, b any) bool { return address(a) == address(b) }

func TestEqualValuesAreOne(t *testing.T) {
	var v Values
	for name, make := range map[string]func(n int) any{
		"maps":   func(n int) any { return number(n) },
		"slices": func(n int) any { return []any{number(n)} },
	} {
		first := v.Of(make(1))
		if again := v.Of(make(1)); !same(first, again) {
			t.Errorf("%s: equal values are two", name)
		}
		if other := v.Of(make(2)); same(first, other) || !reflect.DeepEqual(other, make(2)) {
			t.Errorf("%s: another value is %v", name, other)
		}
	}
	for _, value := range []any{nil, "text", map[string]any{}, []any(nil), []any{make(chan int)}} {
		if got := v.Of(value); !reflect.DeepEqual(got, value) {
			t.Errorf("%v is %v", value, got)
		}
	}
	if len(v.by) != 4 {
		t.Errorf("%d values are known", len(v.by))
	}
}

func TestKeep(t *testing.T) {
	var v Values
	stored, dropped := v.Of(number(1)), v.Of(number(2))
	keep := func() { v.Keep(func(used func(any)) { used(stored) }) }
	keep()
	if !same(v.Of(number(2)), dropped) {
		t.Error("what was just looked up is forgotten")
	}
	keep()
	keep()
	if !same(v.Of(number(1)), stored) {
		t.Error("what is in use is forgotten")
	}
	if same(v.Of(number(2)), dropped) {
		t.Error("what is not in use is kept")
	}
}
