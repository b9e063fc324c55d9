package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/yaml"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/argocd"
)

// checkedByArgoCD are the kinds with health checks of ours.
var checkedByArgoCD = []schema.GroupVersionKind{
	{Group: "controlplane.cluster.x-k8s.io", Version: "v1beta1", Kind: "OpenshiftAssistedControlPlane"},
	{Group: "bootstrap.cluster.x-k8s.io", Version: "v1beta1", Kind: "OpenshiftAssistedConfig"},
	{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Cluster"},
	{Group: "extensions.hive.openshift.io", Version: "v1beta1", Kind: "AgentClusterInstall"},
	{Group: "metal3.io", Version: "v1alpha1", Kind: "BareMetalHost"},
}

// firstWord matches the reason at the start of a message.
var firstWord = regexp.MustCompile(`^[A-Za-z]+`)

// health runs the health checks of Argo CD on all events of the laboratory.
var health *healthLog

// healthLog runs the health checks on each observed version of an object.
type healthLog struct {
	checks argocd.Checks
	// dir is the folder for the first object of each health and message, without names. The testdata of the unit
	// tests of the checks comes from here.
	dir string

	mu       sync.Mutex
	byObject map[string][]argocd.Health
	seen     map[string]bool
	problems []string
}

// followHealth runs the health checks until the suite ends.
func followHealth(ctx context.Context) *healthLog {
	GinkgoHelper()
	checks, err := argocd.Load(filepath.Join("..", "..", "config", "argocd", "health"))
	Expect(err).NotTo(HaveOccurred())
	h := &healthLog{
		checks: checks, dir: filepath.Join(laboratory.Dir(), "health"), byObject: map[string][]argocd.Health{},
		seen: map[string]bool{},
	}
	Expect(os.MkdirAll(h.dir, 0o755)).To(Succeed())
	objects, err := cache.New(laboratory.Env.Config(), cache.Options{Scheme: laboratory.Env.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	for _, kind := range checkedByArgoCD {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(kind)
		informer, err := objects.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		Expect(err).NotTo(HaveOccurred())
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: h.record, UpdateFunc: func(_, object any) { h.record(object) },
		})
		Expect(err).NotTo(HaveOccurred())
	}
	following, end := context.WithCancel(context.Background())
	DeferCleanup(end)
	go func() {
		defer GinkgoRecover()
		Expect(objects.Start(following)).To(Succeed())
	}()
	return h
}

func (h *healthLog) record(seen any) {
	object, is := seen.(*unstructured.Unstructured)
	if !is {
		return
	}
	found, err := h.checks.Of(context.Background(), object)
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err != nil:
		h.problems = append(h.problems, err.Error())
		return
	case found.Status == argocd.Healthy && !installed(object):
		h.problems = append(h.problems, fmt.Sprintf("%s %s/%s is healthy too early", object.GetKind(), object.GetNamespace(), object.GetName()))
	}
	key := healthKey(object.GetKind(), types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()})
	if before := h.byObject[key]; len(before) == 0 || before[len(before)-1].Status != found.Status {
		h.byObject[key] = append(before, found)
	}
	h.keep(object, found)
}

// installed reports whether an object may be healthy, according to its decisive condition.
func installed(object *unstructured.Unstructured) bool {
	wanted, known := map[string]string{
		"OpenshiftAssistedControlPlane": "Available", "OpenshiftAssistedConfig": "HostInstalled", "Cluster": "Available",
		"AgentClusterInstall": "Completed",
	}[object.GetKind()]
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	return !known || slices.ContainsFunc(conditions, func(c any) bool {
		condition, is := c.(map[string]any)
		return is && condition["type"] == wanted && condition["status"] == "True"
	})
}

// keep writes the first object of its kind with this health and reason.
func (h *healthLog) keep(object *unstructured.Unstructured, found argocd.Health) {
	name := object.GetKind() + "-" + found.Status
	if reason := reasonOf(found); reason != "" {
		name += "-" + reason
	}
	if h.seen[name] {
		return
	}
	h.seen[name] = true
	content, err := yaml.Marshal(essential(object.Object, kept))
	if err == nil {
		message, _, _ := strings.Cut(found.Message, "\n")
		err = os.WriteFile(filepath.Join(h.dir, name+".yaml"), fmt.Appendf(nil, "# %s: %s\n%s", found.Status, message, content), 0o600)
	}
	if err != nil {
		h.problems = append(h.problems, err.Error())
	}
}

// reasonOf returns the reason in the message of a health. A message without a reason is a sentence of the check itself.
func reasonOf(found argocd.Health) string {
	reason := firstWord.FindString(found.Message)
	switch {
	case reason != "" && unicode.IsUpper(rune(reason[0])):
		return reason
	case found.Status == argocd.Progressing:
		return "New"
	case found.Status == argocd.Suspended:
		return "Paused"
	}
	return ""
}

// kept are the fields of written objects: neither hardware nor the URLs of images, which contain tokens.
var kept = map[string]any{
	"apiVersion": nil, "kind": nil,
	"metadata": map[string]any{
		"name": nil, "namespace": nil, "uid": nil, "generation": nil, "creationTimestamp": nil, "deletionTimestamp": nil,
		"labels": nil, "ownerReferences": nil,
		"annotations": map[string]any{"baremetalhost.metal3.io/paused": nil},
	},
	"spec": map[string]any{"paused": nil, "controlPlaneRef": nil, "replicas": nil, "version": nil, "distributionVersion": nil},
	"status": map[string]any{
		"conditions": nil, "observedGeneration": nil, "initialization": nil, "installation": nil, "phase": nil, "version": nil,
		"kubernetesVersion": nil,
		"releaseImage":      nil, "replicas": nil, "readyReplicas": nil, "availableReplicas": nil, "upToDateReplicas": nil,
		"bootMode": nil, "agentRef": nil, "problemReason": nil, "hostName": nil, "nodeName": nil, "distributionVersion": nil,
		"installationProgress": nil, "installationStageStartTime": nil, "installationPercentage": nil,
		"operationalStatus": nil, "errorMessage": nil, "errorType": nil, "provisioning": map[string]any{"state": nil},
	},
}

// essential returns the named fields of an object.
func essential(object, named map[string]any) map[string]any {
	part := map[string]any{}
	for key, below := range named {
		value, exists := object[key]
		if fields, is := value.(map[string]any); is && below != nil {
			value = essential(fields, below.(map[string]any))
		}
		if exists {
			part[key] = value
		}
	}
	return part
}

// ofObject returns the history of the health of an object: each change of the status, with its first message.
func (h *healthLog) ofObject(kind string, key types.NamespacedName) []argocd.Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.byObject[healthKey(kind, key)])
}

// withStatus matches a health by its status alone.
func withStatus(status string) gomegatypes.GomegaMatcher { return HaveField("Status", status) }

// expectPlausible checks the whole history: each check returned a result, and no object was healthy before it was
// installed.
func (h *healthLog) expectPlausible() {
	GinkgoHelper()
	h.mu.Lock()
	defer h.mu.Unlock()
	Expect(h.problems).To(BeEmpty())
	Expect(h.byObject).NotTo(BeEmpty())
}

func healthKey(kind string, key types.NamespacedName) string { return kind + " " + key.String() }
