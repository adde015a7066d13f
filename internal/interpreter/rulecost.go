package interpreter

import (
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// ruleCosts says what CEL counts as 1 although it takes as long as its operands are large: their types are not known before.
type ruleCosts struct{}

// CallCost is the cost of one call, or nil for CEL's own.
func (ruleCosts) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	cost := uint64(1)
	switch {
	case function == overloads.Size && len(args) == 1 && args[0].Type() == types.StringType: // it counts runes
		cost = weigh(args[0], maxCost)
	case len(args) != 2:
		return nil
	case function == operators.Equals || function == operators.NotEquals:
		if alike(args[0], args[1]) {
			cost = weigh(args[0], maxCost)
		}
	case function == operators.In || function == operators.OldIn:
		if _, list := args[1].(traits.Lister); list {
			cost = weigh(args[1], maxCost)
		}
	case function == operators.Add && args[0].Type() == types.StringType && args[1].Type() == types.StringType:
		cost = weigh(args[0], maxCost) + weigh(args[1], maxCost)
	default:
		return nil
	}
	return &cost
}

// alike tells whether two values are to be compared part by part.
func alike(a, b ref.Val) bool {
	x, sized := a.(traits.Sizer)
	y, too := b.(traits.Sizer)
	return sized && too && a.Type() == b.Type() && (a.Type() == types.StringType || x.Size() == y.Size())
}

// weigh counts what is in a value, 1 for each value and for every ten bytes of text, and no further than most.
func weigh(v ref.Val, most uint64) uint64 {
	total := uint64(1)
	switch v := v.(type) {
	case types.String:
		total += uint64(len(v)) / 10
	case traits.Lister:
		for it := v.Iterator(); total < most && it.HasNext() == types.True; {
			total += weigh(it.Next(), most-total)
		}
	case traits.Mapper:
		for it := v.Iterator(); total < most && it.HasNext() == types.True; {
			key := it.Next()
			total += weigh(key, most)
			if value, found := v.Find(key); found && total < most {
				total += weigh(value, most-total)
			}
		}
	}
	return min(total, most)
}
