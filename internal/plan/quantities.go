package plan

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/fleetworkload/fleetworkload/backends"
)

// endless is an amount that takes minutes and gigabytes to read: apimachinery writes all its digits out (pkg/api/resource/quantity.go). That
// stops this operator, and whoever else gets it.
var endless = regexp.MustCompile(`[eE][+-]?[0-9]{3,}$|^.{65,}$`)

// amounts are the fields of pods that have quantities in them, or are one (k8s.io/api core/v1 types.go).
var amounts = map[string]bool{"requests": true, "limits": true, "overhead": true, "sizeLimit": true, "divisor": true}

// checkQuantities refuses amounts that nobody can read. code and field say where the manifest comes from.
func checkQuantities(manifest map[string]any, code backends.Code, field string) error {
	at, text := endlessIn(manifest, false)
	if text == "" {
		return nil
	}
	return &backends.Error{
		Code: code, Field: field, Value: text,
		Message: fmt.Sprintf("%s has more digits, or a larger exponent, than any amount needs", at[1:]),
		Remedy:  "write a number, or a number with a unit, such as 500m or 1Gi",
	}
}

// endlessIn finds the first such amount and where it is; text is empty when there is none.
func endlessIn(value any, amount bool) (at, text string) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if at, text := endlessIn(v[key], amount || amounts[key]); text != "" {
				return "." + key + at, text
			}
		}
	case []any:
		for i := range v {
			if at, text := endlessIn(v[i], amount); text != "" {
				return fmt.Sprintf("[%d]%s", i, at), text
			}
		}
	case string:
		if amount && endless.MatchString(v) {
			return "", v
		}
	}
	return "", ""
}
