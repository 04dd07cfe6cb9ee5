package arm

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Types are the published types.
type Types struct {
	// where is the folder and the reference of each resource type, by name with version.
	where map[string]place
	files map[string][]node
}

type place struct{ dir, ref string }

// node is one entry of a types.json.
type node struct {
	Kind                 string              `json:"$type"`
	Name                 string              `json:"name"`
	Value                string              `json:"value"`
	Properties           map[string]property `json:"properties"`
	BaseProperties       map[string]property `json:"baseProperties"`
	AdditionalProperties *reference          `json:"additionalProperties"`
	Discriminator        string              `json:"discriminator"`
	Elements             json.RawMessage     `json:"elements"`
	ItemType             reference           `json:"itemType"`
	Body                 reference           `json:"body"`
	MinLength            *int64              `json:"minLength"`
	MaxLength            *int64              `json:"maxLength"`
	MinValue             *int64              `json:"minValue"`
	MaxValue             *int64              `json:"maxValue"`
}

type property struct {
	Type  reference `json:"type"`
	Flags int       `json:"flags"`
}

// Flags of properties.
const (
	required = 1
	readOnly = 2
)

type reference struct {
	Ref string `json:"$ref"`
}

// Open reads the index of one or more folders of generated types. If several folders have a type, the first one
// counts.
func Open(dirs ...string) (*Types, error) {
	t := &Types{where: map[string]place{}, files: map[string][]node{}}
	for _, dir := range dirs {
		text, err := os.ReadFile(filepath.Join(dir, "index.json"))
		if err != nil {
			return nil, fmt.Errorf("read the index of the published types: %w", err)
		}
		var index struct {
			Resources map[string]reference `json:"resources"`
		}
		if err := json.Unmarshal(text, &index); err != nil {
			return nil, fmt.Errorf("read the index of %s: %w", dir, err)
		}
		for name, ref := range index.Resources {
			if _, known := t.where[name]; !known {
				t.where[name] = place{dir, ref.Ref}
			}
		}
	}
	return t, nil
}

// resource returns a resource type. If the version does not exist, the error lists the existing versions, if there
// are any.
func (t *Types) resource(name string) (at, error) {
	if found, ok := t.where[name]; ok {
		return t.follow(at{dir: found.dir}, found.ref)
	}
	plain, version, _ := strings.Cut(name, "@")
	latest := ""
	for known := range t.where {
		if other, v, _ := strings.Cut(known, "@"); strings.EqualFold(other, plain) {
			if other != plain {
				return at{}, fmt.Errorf("the type is written %s", other)
			}
			latest = max(latest, v)
		}
	}
	if latest == "" {
		return at{}, fmt.Errorf("there is no resource type %s", plain)
	}
	return at{}, fmt.Errorf("%s has no API version %q; the newest is %s", plain, version, latest)
}

// at is one type in its file.
type at struct {
	dir, file string
	node
}

// follow returns the type of a reference: file#/7, or #/7 in the same file.
func (t *Types) follow(from at, ref string) (at, error) {
	name, number, ok := strings.Cut(ref, "#/")
	if name == "" {
		name = from.file
	}
	index, err := strconv.Atoi(number)
	if !ok || err != nil {
		return at{}, fmt.Errorf("the published types refer to %q", ref)
	}
	path := filepath.Join(from.dir, filepath.FromSlash(name))
	nodes, known := t.files[path]
	if !known {
		text, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(text, &nodes)
		}
		if err != nil {
			return at{}, fmt.Errorf("read the published types: %w", err)
		}
		t.files[path] = nodes
	}
	if index < 0 || index >= len(nodes) {
		return at{}, fmt.Errorf("the published types refer to %q", ref)
	}
	return at{dir: from.dir, file: name, node: nodes[index]}, nil
}
