package lab

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
)

var (
	// passwords are those of the pull secret and of all BMCs.
	passwords = regexp.QuoteMeta(PullSecretPassword) + "|" + regexp.QuoteMeta(PullSecretAuth) + "|" + regexp.QuoteMeta(hosts.BMCPassword)
	// tokens are JSON Web Tokens of ServiceAccounts (in kubeconfigs) and of assisted-service.
	tokens = `eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+\.`
	// keys are texts in private keys and kubeconfigs, plain or base64.
	keys = inText("PRIVATE KEY-----", "client-key-data:", "token: eyJ")
)

// Secrets matches texts that must not appear outside Secrets.
var Secrets = regexp.MustCompile(passwords + "|" + tokens + "|" + keys + `|api_key=[^&\s"\[]{8}`)

// kept matches texts that only Secrets may have. urls matches boot URLs, which may have tokens in other objects
// as well.
var (
	kept = regexp.MustCompile(passwords + "|" + tokens + "|" + keys)
	urls = regexp.MustCompile(`https?://[^\s"\\]+`)
)

// inText returns a pattern for texts, plain or base64 at any offset.
func inText(texts ...string) string {
	var patterns []string
	for _, text := range texts {
		patterns = append(patterns, regexp.QuoteMeta(text))
		for before := range 3 {
			encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat(" ", before) + text))
			// The characters at both ends also encode bits of the adjacent text.
			patterns = append(patterns, regexp.QuoteMeta(encoded[(8*before+5)/6:8*(before+len(text))/6]))
		}
	}
	return strings.Join(patterns, "|")
}

// Kinds are all kinds of objects that a cluster has in its namespace until it is deleted.
var Kinds = []schema.GroupVersionKind{
	{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Cluster"},
	{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Machine"},
	{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "MachineSet"},
	{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "MachineDeployment"},
	{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: "Metal3Cluster"},
	{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: "Metal3Machine"},
	{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: "Metal3MachineTemplate"},
	{Group: "bootstrap.cluster.x-k8s.io", Version: "v1beta1", Kind: "OpenshiftAssistedConfig"},
	{Group: "bootstrap.cluster.x-k8s.io", Version: "v1beta1", Kind: "OpenshiftAssistedConfigTemplate"},
	{Group: "controlplane.cluster.x-k8s.io", Version: "v1beta1", Kind: "OpenshiftAssistedControlPlane"},
	{Group: "agent-install.openshift.io", Version: "v1beta1", Kind: "InfraEnv"},
	{Group: "agent-install.openshift.io", Version: "v1beta1", Kind: "Agent"},
	{Group: "extensions.hive.openshift.io", Version: "v1beta1", Kind: "AgentClusterInstall"},
	{Group: "hive.openshift.io", Version: "v1", Kind: "ClusterDeployment"},
	{Group: "hive.openshift.io", Version: "v1", Kind: "ClusterImageSet"},
	{Version: "v1", Kind: "Secret"},
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "Event"},
	{Group: "events.k8s.io", Version: "v1", Kind: "Event"},
	{Group: "metal3.io", Version: "v1alpha1", Kind: "BareMetalHost"},
}

// SecretIn returns the part of an object that only Secrets may have, or a token in its conditions or message;
// "" if none. The kinds of assisted-service are exempt, because it writes its own URLs to their conditions.
func SecretIn(object *unstructured.Unstructured) (string, error) {
	if object.GetKind() == "Secret" {
		return "", nil
	}
	var whole strings.Builder
	encoder := json.NewEncoder(&whole)
	encoder.SetEscapeHTML(false) // otherwise an escaped & would end a URL
	if err := encoder.Encode(object.Object); err != nil {
		return "", fmt.Errorf("cannot search %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	if found := kept.FindString(urls.ReplaceAllString(whole.String(), "")); found != "" ||
		strings.HasSuffix(object.GroupVersionKind().Group, ".openshift.io") {
		return found, nil
	}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	texts, err := json.Marshal(append(conditions, object.Object["message"], object.Object["note"]))
	if err != nil {
		return "", fmt.Errorf("cannot search %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return Secrets.FindString(string(texts)), nil
}
