package jsondiff

// IsZero tells whether a value says nothing in types that leave zero values out. So does an object of such values, such as metadata with a
// creationTimestamp of null, which Karmada's Lua drops.
func IsZero(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case bool:
		return !v
	case int64:
		return v == 0
	case float64:
		return v == 0
	case map[string]any:
		for _, child := range v {
			if !IsZero(child) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	default:
		return false
	}
}
