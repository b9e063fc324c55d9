package seed

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

var (
	uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	macs  = regexp.MustCompile(`\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b`)
	// sources matches the annotation with the source of a published kubeconfig: UID, resource version and digest of a
	// Secret.
	sources = regexp.MustCompile(`(` + uuids.String() + `)/\d+/[0-9a-f]{64}`)
)

// sourceRevision is a placeholder for the resource version of a clone's Secret with assisted-service's kubeconfig, which
// is known after the write of the Secret.
const sourceRevision = "{source-revision}"

// site has the values that distinguish a cluster from others.
type site struct {
	index int
	name  string
	// rewrite turns a kubeconfig of the installed cluster into one of this cluster.
	rewrite func(kubeconfig []byte) ([]byte, error)
	// filter is the value of the label that selects the managers of the cluster; empty: no label.
	filter string
}

// cloner clones an installed cluster. It replaces its name, all UUIDs (of objects, assisted-service and hardware) and MAC
// addresses in all values and names of fields (managedFields). So a reference to an object of the installed cluster
// becomes a reference to the object of the clone.
type cloner struct {
	objects []object
	// kept are strings that all clusters share. They stay, even if they contain a replaced string.
	kept        []string
	uuids, macs []string
}

func newCloner(objects []object, kept ...string) *cloner {
	c := &cloner{objects: objects, kept: kept}
	for _, o := range objects {
		c.uuids = append(c.uuids, uuids.FindAllString(o.json, -1)...)
		c.macs = append(c.macs, macs.FindAllString(o.json, -1)...)
	}
	for _, found := range []*[]string{&c.uuids, &c.macs} {
		slices.Sort(*found)
		*found = slices.Compact(*found)
	}
	return c
}

// replacer replaces the strings that distinguish clusters.
func (c *cloner) replacer(s site) *strings.Replacer {
	var pairs []string
	for _, kept := range c.kept {
		pairs = append(pairs, kept, kept)
	}
	for _, old := range c.uuids {
		pairs = append(pairs, old, uuid.NewSHA1(uuid.NameSpaceOID, []byte(s.name+old)).String())
	}
	for i, old := range c.macs {
		pairs = append(pairs, old, macOf(s.index, i))
	}
	return strings.NewReplacer(append(pairs, TemplateName, s.name)...)
}

// macOf returns a unique MAC address of the range for private use.
func macOf(index, nic int) string {
	return fmt.Sprintf("02:%02x:%02x:%02x:%02x:%02x", byte(nic>>8), byte(nic), byte(index>>16), byte(index>>8), byte(index))
}

// clone returns the objects of a cluster. first are the namespace and the Secret whose resource version is in another
// object. others have sourceRevision instead of this resource version.
func (c *cloner) clone(s site) (first, others []object, err error) {
	replacer := c.replacer(s)
	digests := map[string]string{} // of kubeconfigs, by the UID of their Secrets
	clones := make([]object, 0, len(c.objects))
	for _, o := range c.objects {
		cloned, err := c.cloneOne(o, s, replacer, digests)
		if err != nil {
			return nil, nil, fmt.Errorf("cannot clone %s: %w", o.key, err)
		}
		clones = append(clones, cloned)
	}
	referred := map[string]bool{}
	for i := range clones {
		clones[i].json = sources.ReplaceAllStringFunc(clones[i].json, func(source string) string {
			uid := sources.FindStringSubmatch(source)[1]
			referred[uid] = true
			return uid + "/" + sourceRevision + "/" + digests[uid]
		})
	}
	for _, o := range clones {
		if secret, _ := toSecret(o); strings.HasPrefix(o.key, "/namespaces/") || secret != nil && referred[string(secret.UID)] {
			first = append(first, o)
		} else {
			others = append(others, o)
		}
	}
	return first, others, nil
}

// cloneOne clones one object, and adds the digest of its kubeconfig to digests.
func (c *cloner) cloneOne(o object, s site, replacer *strings.Replacer, digests map[string]string) (object, error) {
	cloned := object{key: replacer.Replace(o.key), json: replacer.Replace(o.json)}
	if s.filter != "" && strings.Contains(o.key, "/openshiftassisted") {
		var err error
		if cloned.json, err = withLabel(cloned.json, clusterv1.WatchLabel, s.filter); err != nil {
			return object{}, err
		}
	}
	secret, err := toSecret(cloned)
	if secret == nil || err != nil {
		return cloned, err
	}
	for key, value := range secret.Data {
		secret.Data[key] = []byte(replacer.Replace(string(value)))
		if !strings.HasSuffix(secret.Name, "kubeconfig") || key != "value" && key != "kubeconfig" {
			continue
		}
		if secret.Data[key], err = s.rewrite(secret.Data[key]); err != nil {
			return object{}, err
		}
		digest := sha256.Sum256(secret.Data[key])
		digests[string(secret.UID)] = hex.EncodeToString(digest[:])
	}
	content, err := json.Marshal(secret)
	return object{key: cloned.key, json: string(content)}, err
}

// withLabel adds a label to an object.
func withLabel(content, label, value string) (string, error) {
	var fields map[string]any
	if err := json.Unmarshal([]byte(content), &fields); err != nil {
		return "", err
	}
	metadata, _ := fields["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	if labels == nil {
		labels = map[string]any{}
	}
	labels[label] = value
	metadata["labels"] = labels
	changed, err := json.Marshal(fields)
	return string(changed), err
}
