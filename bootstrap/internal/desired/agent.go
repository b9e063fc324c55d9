// Package desired decides what is to be: which Agent is the Machine's host, what its InfraEnv holds, and what the Agent is told. Facts in, objects and decisions
// out; it has no client and no clock.
package desired

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/ignition"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// UserError is what keeps a host from being bound, for the user to change.
type UserError struct{ Reason, Message string }

func (e *UserError) Error() string { return e.Message }

func invalid(format string, args ...any) *UserError {
	return &UserError{bootstrapv1.InvalidConfigurationReason, fmt.Sprintf(format, args...)}
}

// AgentSpec is what the identified Agent is told, with the cluster to which it is bound. All of it goes out in the request that binds the host: later
// assisted-service accepts changes and silently ignores them. Requirements and the disk are settled before the host is bound: what changes later does not take
// it out of the cluster again. metadata returns the host's Metal3 metadata, and is only asked when a variable needs it.
func AgentSpec(f *facts.Facts, agent *aiv1beta1.Agent, metadata func() ([]byte, error)) (*aiv1beta1.AgentSpec, error) {
	if problem := f.RoleContradiction(); problem != "" {
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
		Role:                  f.Role(),
		Hostname:              node.name,
		NodeLabels:            node.labels,
		MachineConfigPool:     poolOf(f, agent),
	}
	if wanted.InstallationDiskID, err = installationDisk(f, agent); err != nil {
		return nil, err
	}
	spec := &f.Config.Spec
	if wanted.InstallerArgs, err = installerArgs(f.Config, settings.installerArgs); err != nil {
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
		ServerCA:       f.ServerCA(),
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

// Agent states what an Agent is told, in the cluster if bind, and approved if approve. Also that it is not approved is stated: an approval outlives the unbinding
// of a host, which would then be installed as soon as it is bound again.
func Agent(agent *aiv1beta1.Agent, wanted *aiv1beta1.AgentSpec, bind, approve bool) *aiv1beta1.Agent {
	told := &aiv1beta1.Agent{ObjectMeta: metav1.ObjectMeta{Namespace: agent.Namespace, Name: agent.Name}, Spec: *wanted.DeepCopy()}
	if !bind {
		told.Spec.ClusterDeploymentName = nil
	}
	told.Spec.Approved = approve
	return told
}

// Unbound states an Agent out of the cluster. Role and approval must be stated in each Agent; everything else that we told it is withdrawn.
func Unbound(agent *aiv1beta1.Agent) *aiv1beta1.Agent {
	return &aiv1beta1.Agent{
		ObjectMeta: metav1.ObjectMeta{Namespace: agent.Namespace, Name: agent.Name, ResourceVersion: agent.ResourceVersion},
		Spec:       aiv1beta1.AgentSpec{Role: agent.Spec.Role},
	}
}

// installerFlags are the flags of coreos-installer that assisted-service allows (allowedFlags in its pkg/validations), and whether a value follows.
var installerFlags = map[string]bool{
	"--append-karg": true, "--delete-karg": true, "-n": false, "--copy-network": false, "--network-dir": true,
	"--save-partlabel": true, "--save-partindex": true, "--image-url": true, "--image-file": true,
}

// notArguments says what is wrong with arguments of coreos-installer, which would notice when it is to write the disk; empty: nothing.
func notArguments(args []string) string {
	copied := false
	for i := 0; i < len(args); i++ {
		flag := args[i]
		hasValue, known := installerFlags[flag]
		switch {
		case !known:
			return fmt.Sprintf("%q is neither an argument that assisted-service allows nor the value of one", flag)
		case !hasValue && copied:
			return "--copy-network is there twice"
		case !hasValue: // -n is short for it
			copied = true
		case i+1 == len(args) || strings.HasPrefix(args[i+1], "-"):
			return flag + " has no value"
		default:
			i++
		}
	}
	return ""
}

// withoutCoreosInstaller are the flags that count for a host that boots from its disk as well: assisted-installer heeds them itself when it installs to the root that it runs from, without coreos-installer
// (WriteImageToExistingRoot in its src/ops, 2025).
var withoutCoreosInstaller = []string{"--append-karg", "--delete-karg", "-n", "--copy-network"}

// ofCoreosInstaller is the first flag that nobody but coreos-installer heeds; empty: there is none.
func ofCoreosInstaller(args []string) string {
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") && !slices.Contains(withoutCoreosInstaller, arg) {
			return arg
		}
	}
	return ""
}

// installerArgs are the arguments of coreos-installer as JSON; empty: none.
func installerArgs(config *bootstrapv1.OpenshiftAssistedConfig, ofHost []string) (string, error) {
	var args []string
	for _, a := range config.Spec.KernelArguments {
		args = append(args, "--"+a.Operation+"-karg", a.Value)
	}
	args = slices.Concat(args, config.Spec.InstallerArguments, ofHost)
	if len(args) == 0 {
		return "", nil
	}
	if problem := notArguments(args); problem != "" {
		return "", invalid("spec.installerArguments and the annotation %s of the BareMetalHost: %s", metal3.InstallerArgsAnnotation, problem)
	}
	if flag := ofCoreosInstaller(ofHost); flag != "" && config.Status.BootMode == bootstrapv1.BootModeDiskImage {
		return "", invalid("annotation %s of the BareMetalHost: %s has no effect in boot mode %s, in which OpenShift is installed to the disk that the host runs from: remove it",
			metal3.InstallerArgsAnnotation, flag, bootstrapv1.BootModeDiskImage)
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return "", fmt.Errorf("cannot encode the arguments of the installer: %w", err)
	}
	return string(raw), nil
}
