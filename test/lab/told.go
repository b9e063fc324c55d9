package lab

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
)

// passwords are the pull secret's, and that of all BMCs.
var passwords = regexp.QuoteMeta(PullSecretPassword) + "|" + regexp.QuoteMeta(PullSecretAuth) + "|" + regexp.QuoteMeta(hosts.BMCPassword)

// Passwords matches what belongs into Secrets alone.
var Passwords = regexp.MustCompile(passwords)

// Secrets matches what must be told nowhere: passwords, and the tokens of assisted-service.
var Secrets = regexp.MustCompile(passwords +
	`|api_key=[^&\s"\[]{8}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+\.`)

// Kinds are all kinds of which a cluster leaves objects in its namespace, until it is deleted.
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

// SecretTold is what an Event, or the conditions of an object, tell of what they must not; empty: nothing. The kinds of assisted-service may, in whose conditions it writes URLs of its own.
func SecretTold(object *unstructured.Unstructured) (string, error) {
	if strings.HasSuffix(object.GroupVersionKind().Group, ".openshift.io") {
		return "", nil
	}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	told, err := json.Marshal(append(conditions, object.Object["message"], object.Object["note"]))
	if err != nil {
		return "", fmt.Errorf("cannot search %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return Secrets.FindString(string(told)), nil
}
