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
	// sources matches the value of the annotation that says what a published kubeconfig was copied from: UID, resource
	// version and digest of a Secret.
	sources = regexp.MustCompile(`(` + uuids.String() + `)/\d+/[0-9a-f]{64}`)
)

// sourceRevision stands for the resource version of a clone's Secret with assisted-service's kubeconfig: it is known
// when the Secret is written.
const sourceRevision = "{source-revision}"

// site is what distinguishes a cluster from all others.
type site struct {
	index int
	name  string
	// rewrite makes a kubeconfig of the installed cluster one of this cluster.
	rewrite func(kubeconfig []byte) ([]byte, error)
	// filter is the value of the label that says which managers reconcile the cluster; empty: there is no such label.
	filter string
}

// cloner makes clusters after one that is installed. Everything in them that tells clusters apart is replaced wherever
// it stands, in names of fields (managedFields) as well as in values: the name, UIDs and all other UUIDs (which are ids
// of assisted-service and of hardware), MAC addresses. So what referred to an object of the installed cluster refers to
// that of the clone.
type cloner struct {
	objects []object
	// kept are strings that stay as they are, also where one of the above is in them: they stand for something that all clusters share.
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

// replacer replaces what tells the clusters apart.
func (c *cloner) replacer(s site) *strings.Replacer {
	var pairs []string
	for _, same := range c.kept {
		pairs = append(pairs, same, same)
	}
	for _, old := range c.uuids {
		pairs = append(pairs, old, uuid.NewSHA1(uuid.NameSpaceOID, []byte(s.name+old)).String())
	}
	for i, old := range c.macs {
		pairs = append(pairs, old, macOf(s.index, i))
	}
	return strings.NewReplacer(append(pairs, TemplateName, s.name)...)
}

// macOf is a MAC address that nobody else has, of the range for private use.
func macOf(index, nic int) string {
	return fmt.Sprintf("02:%02x:%02x:%02x:%02x:%02x", byte(nic>>8), byte(nic), byte(index>>16), byte(index>>8), byte(index))
}

// clone returns the objects of a cluster: first the one that others tell the resource version of, with the namespace,
// then all others, with sourceRevision in place of it.
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

// cloneOne clones one object; digests get that of the kubeconfig that is in it.
func (c *cloner) cloneOne(o object, s site, replacer *strings.Replacer, digests map[string]string) (object, error) {
	cloned := object{key: replacer.Replace(o.key), json: replacer.Replace(o.json)}
	if s.filter != "" && strings.Contains(o.key, "/openshiftassisted") {
		var err error
		if cloned.json, err = labelled(cloned.json, clusterv1.WatchLabel, s.filter); err != nil {
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

// labelled adds a label to an object.
func labelled(content, label, value string) (string, error) {
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
