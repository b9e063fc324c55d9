// Package desired decides the desired state of a Machine's host: which Agent runs on it, its InfraEnv, and
// the settings of its Agent. It has facts as input, and objects and decisions as output. It has no client and
// no clock.
package desired

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/hostrole"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/ignition"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/joining"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// UserError is a problem that blocks the binding of a host until the user fixes it.
type UserError struct{ Reason, Message string }

func (e *UserError) Error() string { return e.Message }

func invalid(format string, args ...any) *UserError {
	return &UserError{bootstrapv1.InvalidConfigurationReason, fmt.Sprintf(format, args...)}
}

// AgentSpec returns the spec of the identified Agent, with the cluster to which it is bound. All settings go
// out in the request that binds the host: assisted-service silently ignores later changes. Requirements and
// the disk are checked before the host is bound; a later change does not unbind it. metadata returns the
// host's Metal3 metadata, and is called only if a variable needs it.
func AgentSpec(f *facts.Facts, agent *aiv1beta1.Agent, metadata func() ([]byte, error)) (*aiv1beta1.AgentSpec, error) {
	if problem := hostrole.Conflict(f); problem != "" {
		return nil, &UserError{bootstrapv1.RoleConflictReason, problem}
	}
	if problem := belowRequirements(f, agent); problem != nil && !facts.BoundByUs(agent) {
		return nil, problem
	}
	settings, err := settingsOf(f)
	if err != nil {
		return nil, err
	}
	node, err := resolveNode(f, agent, &settings, metadata)
	if err != nil {
		return nil, err
	}
	wanted := &aiv1beta1.AgentSpec{
		ClusterDeploymentName: &aiv1beta1.ClusterReference{Namespace: f.Deployment.Namespace, Name: f.Deployment.Name},
		Role:                  hostrole.Of(f),
		Hostname:              node.name,
		NodeLabels:            node.labels,
		MachineConfigPool:     poolOf(f, agent),
	}
	if wanted.InstallationDiskID, err = installationDisk(f, agent); err != nil {
		return nil, err
	}
	spec := &f.Config.Spec
	if wanted.InstallerArgs, err = installerArgs(f, settings.installerArgs); err != nil {
		return nil, err
	}
	wanted.IgnitionConfigOverrides, err = ignition.Build(ignition.Input{
		NodeName:       node.name,
		KubeletLabels:  node.labels,
		ProviderID:     node.providerID,
		PreCommands:    spec.PreBootstrapCommands,
		PostCommands:   spec.PostBootstrapCommands,
		SentinelDir:    spec.BootstrapCommandSentinelDir,
		KubeconfigPath: spec.PostBootstrapKubeconfigPath,
		ServerCA:       joining.ServerCA(f),
		Overrides: []ignition.Override{
			{Of: "annotation " + bootstrapv1.IgnitionOverrideAnnotation, Config: f.Config.Annotations[bootstrapv1.IgnitionOverrideAnnotation]},
			{Of: "annotation " + metal3.IgnitionAnnotation + " of the BareMetalHost", Config: settings.ignition},
		},
	})
	if err != nil {
		return nil, invalid("%s", err)
	}
	return wanted, nil
}

// Agent returns the Agent to apply, in the cluster if bind, and approved if approve. A false approval is also
// applied: an approval outlives the unbinding of a host, which would be installed as soon as it is bound
// again.
func Agent(agent *aiv1beta1.Agent, wanted *aiv1beta1.AgentSpec, bind, approve bool) *aiv1beta1.Agent {
	applied := &aiv1beta1.Agent{ObjectMeta: metav1.ObjectMeta{Namespace: agent.Namespace, Name: agent.Name}, Spec: *wanted.DeepCopy()}
	if !bind {
		applied.Spec.ClusterDeploymentName = nil
	}
	applied.Spec.Approved = approve
	return applied
}

// Unbound returns the Agent to apply to take it out of the cluster. Role and approval are required in each
// Agent; all other applied fields are withdrawn.
func Unbound(agent *aiv1beta1.Agent) *aiv1beta1.Agent {
	return &aiv1beta1.Agent{
		ObjectMeta: metav1.ObjectMeta{Namespace: agent.Namespace, Name: agent.Name, ResourceVersion: agent.ResourceVersion},
		Spec:       aiv1beta1.AgentSpec{Role: agent.Spec.Role},
	}
}

// installerFlags are the flags of coreos-installer that assisted-service allows (allowedFlags in its
// pkg/validations), and whether each has a value.
var installerFlags = map[string]bool{
	"--append-karg": true, "--delete-karg": true, "-n": false, "--copy-network": false, "--network-dir": true,
	"--save-partlabel": true, "--save-partindex": true, "--image-url": true, "--image-file": true,
}

// argumentsProblem returns why arguments of coreos-installer are invalid; "" if they are valid.
// coreos-installer itself would only fail when it writes the disk.
func argumentsProblem(args []string) string {
	copied := false
	for i := 0; i < len(args); i++ {
		flag := args[i]
		hasValue, known := installerFlags[flag]
		switch {
		case !known:
			return fmt.Sprintf("%q is neither an argument that assisted-service allows nor the value of one", flag)
		case !hasValue && copied:
			return "--copy-network is set twice"
		case !hasValue: // -n is the short form
			copied = true
		case i+1 == len(args) || strings.HasPrefix(args[i+1], "-"):
			return flag + " has no value"
		default:
			i++
		}
	}
	return ""
}

// installerFlagsOnDiskImage are the flags that also work for a host that boots from its disk.
// assisted-installer applies them itself when it installs to the root that it runs from, without
// coreos-installer (WriteImageToExistingRoot in its src/ops, 2025).
var installerFlagsOnDiskImage = []string{"--append-karg", "--delete-karg", "-n", "--copy-network"}

// ineffectiveFlag returns the first flag that only coreos-installer applies; "" if there is none.
func ineffectiveFlag(args []string) string {
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") && !slices.Contains(installerFlagsOnDiskImage, arg) {
			return arg
		}
	}
	return ""
}

// installerArgs returns the arguments of coreos-installer as JSON; "" if there are none.
func installerArgs(f *facts.Facts, hostArgs []string) (string, error) {
	var args []string
	for _, a := range f.Config.Spec.KernelArguments {
		args = append(args, "--"+a.Operation+"-karg", a.Value)
	}
	args = slices.Concat(args, f.Config.Spec.InstallerArguments, hostArgs)
	if len(args) == 0 {
		return "", nil
	}
	if problem := argumentsProblem(args); problem != "" {
		return "", invalid("spec.installerArguments and the annotation %s of the BareMetalHost: %s", metal3.InstallerArgsAnnotation, problem)
	}
	if flag := ineffectiveFlag(hostArgs); flag != "" && f.BootMode == bootstrapv1.BootModeDiskImage {
		return "", invalid(
			"annotation %s of the BareMetalHost: %s has no effect in boot mode %s, in which OpenShift is installed to the disk that the host "+
				"runs from: remove it",
			metal3.InstallerArgsAnnotation,
			flag,
			bootstrapv1.BootModeDiskImage,
		)
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return "", fmt.Errorf("cannot encode the arguments of the installer: %w", err)
	}
	return string(raw), nil
}
