package seed

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

const (
	machineUID = "aaaaaaaa-0000-4000-8000-000000000001"
	adminUID   = "aaaaaaaa-0000-4000-8000-000000000002"
	sharedUID  = "aaaaaaaa-0000-4000-8000-000000000003"
	providerID = "metal3://site-00000/host-0"
)

// installed returns the objects of an installed cluster that matter here.
func installed() []object {
	return []object{
		{"/namespaces/site-00000", `{"metadata":{"name":"site-00000"}}`},
		{
			"/cluster.x-k8s.io/machines/site-00000/site-00000-abcde",
			`{"metadata":{"name":"site-00000-abcde","namespace":"site-00000","uid":"` + machineUID + `"},` +
				`"spec":{"providerID":"` + providerID + `"},"status":{"token":"` + sharedUID + `"}}`,
		},
		{"/bootstrap.cluster.x-k8s.io/openshiftassistedconfigs/site-00000/site-00000-abcde", `{"metadata":{"name":"site-00000-abcde",` +
			`"ownerReferences":[{"uid":"` + machineUID + `"}],"managedFields":[{"fieldsV1":{"k:{\"uid\":\"` + machineUID +
			`\"}":{}}}]},"macs":["52:54:00:00:00:01","52:54:00:00:00:02"]}`},
		{
			"/secrets/site-00000/site-00000-admin-kubeconfig",
			`{"kind":"Secret","metadata":{"name":"site-00000-admin-kubeconfig","uid":"` + adminUID + `"},"data":{"kubeconfig":"b2xk"}}`,
		},
		{"/secrets/site-00000/site-00000-kubeconfig", `{"kind":"Secret","metadata":{"name":"site-00000-kubeconfig","annotations":{"source":"` +
			adminUID + `/4711/` + strings.Repeat("0", 64) + `"}},"data":{"value":"b2xk"}}`},
	}
}

func siteOf(index int) site {
	name := fmt.Sprintf(siteFormat, index)
	return site{index: index, name: name, rewrite: func([]byte) ([]byte, error) { return []byte("kubeconfig of " + name), nil }}
}

// byKey clones the installed cluster. The keys of the result are the keys of the installed objects.
func byKey(g *WithT, made site, kept ...string) (first, others map[string]string) {
	f, o, err := newCloner(installed(), kept...).clone(made)
	g.Expect(err).NotTo(HaveOccurred())
	result := []map[string]string{{}, {}}
	for i, objects := range [][]object{f, o} {
		for _, cloned := range objects {
			g.Expect(cloned.key).NotTo(ContainSubstring(TemplateName))
			result[i][strings.ReplaceAll(cloned.key, made.name, TemplateName)] = cloned.json
		}
	}
	return result[0], result[1]
}

func TestCloneKeepsOnlySharedStrings(t *testing.T) {
	g := NewWithT(t)
	first, others := byKey(g, siteOf(42), sharedUID, providerID)
	g.Expect(first).To(HaveLen(2), "the namespace, and the Secret whose resource version is in another object")
	machine, config := others[installed()[1].key], others[installed()[2].key]
	g.Expect(machine).To(ContainSubstring(`"name":"site-00042-abcde"`))
	g.Expect(machine).To(ContainSubstring(sharedUID), "a shared string stays")
	g.Expect(machine).To(ContainSubstring(providerID), "a shared string stays, even with a name in it")
	for _, own := range []string{machineUID, adminUID, "52:54:00"} {
		g.Expect(machine + config).NotTo(ContainSubstring(own))
	}
}

func TestOwnersAreClones(t *testing.T) {
	g := NewWithT(t)
	_, others := byKey(g, siteOf(42))
	machine, config := others[installed()[1].key], others[installed()[2].key]
	uid := uuids.FindString(machine)
	g.Expect(strings.Count(config, uid)).To(Equal(2), "in the owner reference, and in the name of a managed field")
}

func TestClonesHaveDifferentIdentifiers(t *testing.T) {
	g := NewWithT(t)
	seen := map[string]int{}
	for i := 1; i <= 300; i++ {
		_, others := byKey(g, siteOf(i))
		config := others[installed()[2].key]
		for _, own := range append(macs.FindAllString(config, -1), uuids.FindString(config)) {
			seen[own]++
		}
	}
	g.Expect(seen).To(HaveLen(3 * 300))
}

func TestPublishedKubeconfigHasItsSource(t *testing.T) {
	g := NewWithT(t)
	first, others := byKey(g, siteOf(42))
	admin, err := toSecret(object{"/secrets/", first[installed()[3].key]})
	g.Expect(err).NotTo(HaveOccurred())
	published, err := toSecret(object{"/secrets/", others[installed()[4].key]})
	g.Expect(err).NotTo(HaveOccurred())
	for _, content := range [][]byte{admin.Data["kubeconfig"], published.Data["value"]} {
		g.Expect(string(content)).To(Equal("kubeconfig of site-00042"))
	}
	digest := sha256.Sum256(admin.Data["kubeconfig"])
	g.Expect(published.Annotations).To(HaveKeyWithValue("source", string(admin.UID)+"/"+sourceRevision+"/"+hex.EncodeToString(digest[:])))
}

func TestOnlyReconciledObjectsGetShard(t *testing.T) {
	g := NewWithT(t)
	made := siteOf(42)
	made.filter = "shard-1"
	_, others := byKey(g, made)
	g.Expect(others[installed()[2].key]).To(ContainSubstring(`"cluster.x-k8s.io/watch-filter":"shard-1"`))
	g.Expect(others[installed()[1].key]).NotTo(ContainSubstring("watch-filter"))
}

func TestTransientObjectsAreNotCloned(t *testing.T) {
	g := NewWithT(t)
	for key, wanted := range map[string]bool{
		"/namespaces/site-00000":                                           true,
		"/secrets/site-00000/x":                                            true,
		"/secrets/site-00000-2/x":                                          false,
		"/events/site-00000/x":                                             false,
		"/hive.openshift.io/clusterimagesets/of-" + TemplateName:           true,
		"/apiextensions.k8s.io/customresourcedefinitions/clusters.example": false,
	} {
		g.Expect(belongs(key, []byte(`"site-00000"`))).To(Equal(wanted), key)
	}
}

func TestStoredObjectsAreReadAsJSON(t *testing.T) {
	g := NewWithT(t)
	content, err := toJSON([]byte(`{"kind":"Machine"}`))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(content).To(Equal(`{"kind":"Machine"}`))

	stored := &bytes.Buffer{}
	secret := &corev1.Secret{Data: map[string][]byte{"a": []byte("b")}}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	g.Expect(serializer.NewSerializer(clientgoscheme.Scheme, clientgoscheme.Scheme).Encode(secret, stored)).To(Succeed())
	content, err = toJSON(stored.Bytes())
	g.Expect(err).NotTo(HaveOccurred())
	read, err := toSecret(object{"/secrets/a/b", content})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read).To(Equal(secret))

	_, err = toJSON(append(protobuf, 1, 2, 3))
	g.Expect(err).To(HaveOccurred())
}
