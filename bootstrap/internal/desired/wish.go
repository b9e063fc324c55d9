// Package desired decides what is to be: which Agent is the Machine's host, what its InfraEnv holds, and what the Agent is told. Facts in, objects and decisions
// out; it has no client and no clock.
package desired

import (
	"encoding/json"
	"fmt"

	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/ignition"
)

// Wish is what an Agent is told. All of it goes out in the request that binds the host: later assisted-service accepts changes and
// silently ignores them.
type Wish struct {
	ClusterNamespace, ClusterName   string
	Role, Hostname, DiskID          string
	NodeLabels                      map[string]string
	IgnitionOverride, InstallerArgs string
}

// UserError is what keeps a host from being bound, for the user to change.
type UserError struct{ Reason, Message string }

func (p *UserError) Error() string { return p.Message }

func invalid(format string, args ...any) *UserError {
	return &UserError{bootstrapv1.InvalidConfigurationReason, fmt.Sprintf(format, args...)}
}

// WishFor computes what the identified Agent is told. metadata returns the host's Metal3 metadata, and is only asked when a variable needs it.
// Requirements and the disk are settled before the host is bound: what changes later does not take it out of the cluster again.
func WishFor(f *facts.Facts, agent *aiv1beta1.Agent, metadata func() ([]byte, error)) (*Wish, error) {
	if p := belowRequirements(f, agent); p != nil && !facts.Told(agent) {
		return nil, p
	}
	node, err := resolveNode(f, agent, metadata)
	if err != nil {
		return nil, err
	}
	w := &Wish{
		ClusterNamespace: f.Deployment.Namespace,
		ClusterName:      f.Deployment.Name,
		Role:             f.Role(),
		Hostname:         node.name,
		NodeLabels:       node.labels,
	}
	if w.DiskID, err = installationDisk(f, agent); err != nil {
		return nil, err
	}
	spec := &f.Config.Spec
	if w.InstallerArgs, err = installerArgs(spec.KernelArguments); err != nil {
		return nil, err
	}
	w.IgnitionOverride, err = ignition.Build(ignition.Input{
		NodeName:       node.name,
		KubeletLabels:  node.labels,
		ProviderID:     node.providerID,
		PreCommands:    spec.PreBootstrapCommands,
		PostCommands:   spec.PostBootstrapCommands,
		SentinelDir:    spec.BootstrapCommandSentinelDir,
		KubeconfigPath: spec.PostBootstrapKubeconfigPath,
		Override:       f.Config.Annotations[bootstrapv1.IgnitionOverrideAnnotation],
	})
	if err != nil {
		return nil, invalid("annotation %s: %s", bootstrapv1.IgnitionOverrideAnnotation, err)
	}
	return w, nil
}

// Object states the wish on the Agent, with the cluster reference if bind, and the approval if approve.
func (w *Wish) Object(agent *aiv1beta1.Agent, bind, approve bool) *unstructured.Unstructured {
	labels := map[string]any{}
	for key, value := range w.NodeLabels {
		labels[key] = value
	}
	spec := map[string]any{
		"role":                    w.Role,
		"hostname":                w.Hostname,
		"installation_disk_id":    w.DiskID,
		"ignitionConfigOverrides": w.IgnitionOverride,
		"installerArgs":           w.InstallerArgs,
		// Also when it is false: an approval outlives the unbinding of a host, which would then be installed as soon as it is bound again.
		"approved": approve,
	}
	if len(labels) > 0 {
		spec["nodeLabels"] = labels
	}
	if bind {
		spec["clusterDeploymentName"] = map[string]any{"name": w.ClusterName, "namespace": w.ClusterNamespace}
	}
	return agentWith(agent, spec)
}

// installerArgs are the arguments of coreos-installer as JSON. assisted-service allows these two (its pkg/validations).
func installerArgs(arguments []bootstrapv1.KernelArgument) (string, error) {
	if len(arguments) == 0 {
		return "", nil
	}
	args := make([]string, 0, 2*len(arguments))
	for _, a := range arguments {
		switch a.Operation {
		case "append", "delete":
			args = append(args, "--"+a.Operation+"-karg", a.Value)
		default:
			return "", invalid("spec.kernelArguments: operation %q is not supported: use append or delete", a.Operation)
		}
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return "", fmt.Errorf("cannot encode the kernel arguments: %w", err)
	}
	return string(raw), nil
}

// Unbound states an Agent out of the cluster. Role and approval must be stated in each Agent; everything else that we told it is withdrawn.
func Unbound(agent *aiv1beta1.Agent) *unstructured.Unstructured {
	unbound := agentWith(agent, map[string]any{"role": string(agent.Spec.Role), "approved": false})
	unbound.SetResourceVersion(agent.ResourceVersion)
	return unbound
}

func agentWith(agent *aiv1beta1.Agent, spec map[string]any) *unstructured.Unstructured {
	desired := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	desired.SetGroupVersionKind(aiv1beta1.GroupVersion.WithKind("Agent"))
	desired.SetNamespace(agent.Namespace)
	desired.SetName(agent.Name)
	return desired
}
