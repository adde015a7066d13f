package override

import (
	// Digests are only accepted when their algorithm is linked in.
	_ "crypto/sha256"
	_ "crypto/sha512"
	"errors"
	"strings"

	"github.com/distribution/reference"

	"github.com/fleetworkload/fleetworkload/api/v1alpha1"
	"github.com/fleetworkload/fleetworkload/backends"
)

// image is an image reference in parts, cut as Karmada cuts it (pkg/util/imageparser/parser.go, v1.17.1), so that
// "nginx" has no registry and its repository is nginx, not library/nginx.
type image struct {
	registry   string
	repository string
	tag        string
	// digest may stand beside a tag. Karmada drops it then, and so would unpin an image whose registry is changed.
	digest string
}

func parseImage(s string) (image, error) {
	ref, err := reference.Parse(s)
	if err != nil {
		return image{}, err
	}
	named, ok := ref.(reference.Named)
	if !ok {
		return image{}, errors.New("the reference has no repository")
	}
	i := image{repository: named.Name()}
	// The first part of the name is a host when it looks like one; reference.Domain would take any first part.
	if first, rest, more := strings.Cut(named.Name(), "/"); more && (strings.ContainsAny(first, ".:") || first == "localhost") {
		i.registry, i.repository = first, rest
	}
	if tagged, ok := ref.(reference.Tagged); ok {
		i.tag = tagged.Tag()
	}
	if digested, ok := ref.(reference.Digested); ok {
		i.digest = digested.Digest().String()
	}
	return i, nil
}

// String returns the reference as it stands in a manifest.
func (i image) String() string {
	s := i.repository
	if i.registry != "" {
		s = i.registry + "/" + s
	}
	if i.tag != "" {
		s += ":" + i.tag
	}
	if i.digest != "" {
		s += "@" + i.digest
	}
	return s
}

// with returns the image with the parts of an override; parts that it leaves empty stay.
func (i image) with(o v1alpha1.ImageOverride) image {
	if o.Registry != "" {
		i.registry = o.Registry
	}
	if o.Repository != "" {
		i.repository = o.Repository
	}
	if o.Tag != "" {
		i.tag, i.digest = o.Tag, ""
	}
	if o.Digest != "" {
		i.tag, i.digest = "", o.Digest
	}
	return i
}

// checkImage validates the parts of an override, each by putting it into an image and taking it out again.
func checkImage(field string, o v1alpha1.ImageOverride) *backends.Error {
	for _, part := range []struct {
		name, value, remedy string
		in                  image
	}{
		{
			"registry", o.Registry, "write a host with a dot or a port, and nothing else, such as registry.example.com:5000; " +
				"a path belongs into repository",
			image{registry: o.Registry, repository: "x"},
		},
		{
			"repository", o.Repository, "write the path behind the registry in lower case, without tag and digest, such as library/nginx",
			image{registry: "registry.example.com", repository: o.Repository},
		},
		{
			"tag", o.Tag, "write a tag without the colon, such as 1.29",
			image{repository: "x", tag: o.Tag},
		},
		{
			"digest", o.Digest, "write algorithm and value, such as sha256:<64 hexadecimal digits>",
			image{repository: "x", digest: o.Digest},
		},
	} {
		if part.value == "" {
			continue
		}
		if out, err := parseImage(part.in.String()); err != nil || out != part.in {
			return invalid(field+"."+part.name, part.value, "this is no "+part.name+" of an image", part.remedy)
		}
	}
	return nil
}
