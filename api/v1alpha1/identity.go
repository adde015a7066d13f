package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Identity is by what backends know a FleetWorkload: the value of LabelUID. It has the form of a UID, and is the same again when the
// management cluster was rebuilt and the FleetWorkload made anew: it comes from the installation of the operator, from the FleetWorkload's
// name, and from the object that it carries, in whichever version.
func Identity(installation string, fleetWorkload types.NamespacedName, carried WorkloadReference) types.UID {
	group, _, grouped := strings.Cut(carried.APIVersion, "/")
	if !grouped {
		group = ""
	}
	parts := []string{installation, fleetWorkload.Namespace, fleetWorkload.Name, group, carried.Kind, carried.Name}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // RFC 9562: version 8, which is whatever one likes
	text := hex.EncodeToString(sum[:16])
	return types.UID(fmt.Sprintf("%s-%s-%s-%s-%s", text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
}
