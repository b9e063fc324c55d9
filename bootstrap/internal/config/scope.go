package config

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	"github.com/openshift/assisted-service/models"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/labels/format"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// scope holds the facts of one reconcile, each read once, and what the phases found out. Objects that do not exist are nil.
type scope struct {
	// before is the config as it was read; config is changed by the phases (its status only).
	before, config *bootstrapv1.OpenshiftAssistedConfig
	// readVersion is the config's resource version in the cache.
	readVersion  string
	machine      *clusterv1.Machine
	cluster      *clusterv1.Cluster
	infraMachine *unstructured.Unstructured
	// infraMachineFailure is why the infrastructure machine cannot be read.
	infraMachineFailure error
	deployment          *hivev1.ClusterDeployment
	install             *hiveext.AgentClusterInstall
	// controlPlaneRuns is true when a control-plane Machine of the cluster had a Node, though assisted-service has not begun to install it. It is looked for
	// only then.
	controlPlaneRuns bool
	// infraEnvs are those that serve this config: one, or more after a mishap. namesake is the InfraEnv that has the Machine's name.
	infraEnvs []*aiv1beta1.InfraEnv
	namesake  *aiv1beta1.InfraEnv
	// agents are those that booted from the infraEnvs.
	agents []*aiv1beta1.Agent
	// othersDeployments are the ClusterDeployments of other clusters to which agents are bound, where the Machine's Cluster is gone.
	othersDeployments []string

	host       *metal3api.BareMetalHost
	dataSecret *metav1.PartialObjectMetadata
	// networks are the NMStateConfigs that the config selects.
	networks []*aiv1beta1.NMStateConfig

	// agent is the one of the Machine's host, once it is identified.
	agent *aiv1beta1.Agent
	// wanted is what the Agent is to be told, once it is known.
	wanted *agentWish

	conditions []metav1.Condition
	events     []notice
	again      reconcile.Again
}

// notice is an event for people who watch the host.
type notice struct {
	kind, reason, message string
}

// gather reads everything that a reconcile needs. It returns nil when there is nothing to reconcile.
func (r *Reconciler) gather(ctx context.Context, key types.NamespacedName) (*scope, error) {
	config := &bootstrapv1.OpenshiftAssistedConfig{}
	if err := r.Client.Get(ctx, key, config); err != nil {
		if apierrors.IsNotFound(err) {
			r.written.forget(key)
			r.ignitions.Drop(key)
			return nil, nil //nolint:nilnil // gone
		}
		return nil, fmt.Errorf("cannot read the config: %w", err)
	}
	if !r.Selected(config) {
		return nil, nil //nolint:nilnil // another manager's
	}
	r.written.overlay(config)
	s := &scope{before: config, config: config.DeepCopy(), readVersion: config.ResourceVersion}
	steps := []func(context.Context, *scope) error{r.gatherMachine, r.gatherInfraEnvs, r.gatherCluster, r.gatherAgents, r.gatherInfraMachine, r.gatherHost, r.gatherDataSecret, r.gatherNetworks}
	for _, step := range steps {
		if err := step(ctx, s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// gatherMachine finds the Machine by its reference to the config, which is there before Cluster API makes it the owner.
func (r *Reconciler) gatherMachine(ctx context.Context, s *scope) error {
	machines := &clusterv1.MachineList{}
	if err := r.Client.List(ctx, machines, client.InNamespace(s.config.Namespace), client.MatchingFields{machineByConfig: s.config.Name}); err != nil {
		return fmt.Errorf("cannot look for the Machine: %w", err)
	}
	owner := metav1.GetControllerOf(s.config)
	for i := range machines.Items {
		machine := &machines.Items[i]
		if len(machines.Items) == 1 || owner != nil && owner.UID == machine.UID {
			s.machine = machine
		}
	}
	return nil
}

func (r *Reconciler) gatherCluster(ctx context.Context, s *scope) error {
	name := s.config.Labels[clusterv1.ClusterNameLabel]
	if s.machine != nil {
		name = s.machine.Spec.ClusterName
	}
	if name == "" {
		return nil
	}
	var err error
	if s.cluster, err = kube.Read(ctx, r.Client, client.ObjectKey{Namespace: s.config.Namespace, Name: name}, &clusterv1.Cluster{}); err != nil || s.cluster == nil {
		return err
	}
	installation := s.cluster.Spec.ControlPlaneRef.Name
	if installation == "" {
		return nil
	}
	if s.deployment, err = kube.Read(ctx, r.Client, client.ObjectKey{Namespace: s.config.Namespace, Name: installation}, &hivev1.ClusterDeployment{}); err != nil {
		return err
	}
	if s.install, err = kube.Read(ctx, r.Client, client.ObjectKey{Namespace: s.config.Namespace, Name: installation}, &hiveext.AgentClusterInstall{}); err != nil || s.installation().Started {
		return err
	}
	return r.gatherControlPlane(ctx, s)
}

func (r *Reconciler) gatherControlPlane(ctx context.Context, s *scope) error {
	machines := &clusterv1.MachineList{}
	err := r.Client.List(ctx, machines, client.InNamespace(s.config.Namespace), client.UnsafeDisableDeepCopy,
		client.MatchingLabels{clusterv1.ClusterNameLabel: s.cluster.Name}, client.HasLabels{clusterv1.MachineControlPlaneLabel})
	if err != nil {
		return fmt.Errorf("cannot look for the control plane's Machines: %w", err)
	}
	s.controlPlaneRuns = slices.ContainsFunc(machines.Items, func(m clusterv1.Machine) bool { return metal3.HadNode(&m) })
	return nil
}

func (r *Reconciler) gatherInfraEnvs(ctx context.Context, s *scope) error {
	list := &aiv1beta1.InfraEnvList{}
	if err := r.Client.List(ctx, list, client.InNamespace(s.config.Namespace), client.MatchingFields{infraEnvByConfig: format.MustFormatValue(s.config.Name)}); err != nil {
		return fmt.Errorf("cannot look for InfraEnvs: %w", err)
	}
	for i := range list.Items {
		s.infraEnvs = append(s.infraEnvs, &list.Items[i])
	}
	if s.machine != nil {
		var err error
		if s.namesake, err = kube.Read(ctx, r.Client, client.ObjectKey{Namespace: s.config.Namespace, Name: s.machine.Name}, &aiv1beta1.InfraEnv{}); err != nil {
			return err
		}
	}
	r.written.addMade(s, r.now())
	return nil
}

// gatherAgents lists the Agents of the InfraEnvs. Some versions of assisted-service leave Agents behind when their InfraEnv is deleted: they are
// known by its name, which is the Machine's.
func (r *Reconciler) gatherAgents(ctx context.Context, s *scope) error {
	var infraEnvs []string
	for _, infraEnv := range s.infraEnvs {
		infraEnvs = append(infraEnvs, infraEnv.Name)
	}
	if s.deleting() && s.machine != nil && s.namesake == nil {
		infraEnvs = append(infraEnvs, s.machine.Name)
	}
	for _, name := range infraEnvs {
		agents := &aiv1beta1.AgentList{}
		if err := r.Client.List(ctx, agents, client.InNamespace(s.config.Namespace), client.MatchingFields{agentByInfraEnv: name}); err != nil {
			return fmt.Errorf("cannot look for Agents: %w", err)
		}
		for i := range agents.Items {
			agent := &agents.Items[i]
			if err := r.gatherOwner(ctx, s, agent); err != nil {
				return err
			}
			if !s.boundElsewhere(agent) || len(s.infraEnvs) > 0 {
				s.agents = append(s.agents, agent)
			}
		}
	}
	slices.SortFunc(s.agents, func(a, b *aiv1beta1.Agent) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// gatherOwner finds out whether an Agent is another cluster's where the Machine's Cluster, which would tell, is gone.
func (r *Reconciler) gatherOwner(ctx context.Context, s *scope, agent *aiv1beta1.Agent) error {
	ref := agent.Spec.ClusterDeploymentName
	if s.cluster != nil || ref == nil || ref.Namespace != s.config.Namespace {
		return nil
	}
	deployment, err := kube.Read(ctx, r.Client, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, &hivev1.ClusterDeployment{})
	if err != nil {
		return err
	}
	if deployment != nil && deployment.Labels[clusterv1.ClusterNameLabel] != s.config.Labels[clusterv1.ClusterNameLabel] {
		s.othersDeployments = append(s.othersDeployments, ref.Name)
	}
	return nil
}

// boundElsewhere tells whether an Agent belongs to another cluster than the Machine's.
func (s *scope) boundElsewhere(agent *aiv1beta1.Agent) bool {
	ref := agent.Spec.ClusterDeploymentName
	switch {
	case ref == nil:
		return false
	case ref.Namespace != s.config.Namespace:
		return true
	case s.cluster != nil:
		return ref.Name != s.cluster.Spec.ControlPlaneRef.Name
	}
	return slices.Contains(s.othersDeployments, ref.Name)
}

func (r *Reconciler) gatherInfraMachine(ctx context.Context, s *scope) error {
	if s.machine == nil || !s.machine.Spec.InfrastructureRef.IsDefined() || s.deleting() {
		return nil
	}
	infraMachine, err := external.GetObjectFromContractVersionedRef(ctx, r.Client, s.machine.Spec.InfrastructureRef, s.machine.Namespace)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		s.infraMachineFailure = err // for example a CRD without the label of the contract: something to report
		return nil                  //nolint:nilerr // reported, and returned, by the phase that needs it
	}
	s.infraMachine = infraMachine
	return r.watchInfraMachine(ctx, infraMachine)
}

// gatherHost finds the BareMetalHost behind the Metal3Machine: by CAPM3's annotation on it, else by the consumer that the BareMetalHost names. CAPM3
// takes hosts of the Metal3Machine's namespace only. The annotation can be edited by whoever may edit the Metal3Machine, and what is known of a host is
// told in conditions: so the host must name the Metal3Machine in turn.
func (r *Reconciler) gatherHost(ctx context.Context, s *scope) error {
	if !r.metal3.Load() || !s.hasBareMetalHost() {
		return nil
	}
	namespace, consumer := s.infraMachine.GetNamespace(), client.ObjectKeyFromObject(s.infraMachine)
	if _, name, ok := strings.Cut(s.infraMachine.GetAnnotations()[metal3.HostAnnotation], "/"); ok {
		host, err := kube.Read(ctx, r.Client, client.ObjectKey{Namespace: namespace, Name: name}, &metal3api.BareMetalHost{})
		if err != nil {
			return err
		}
		if host != nil {
			if metal3.ConsumerOf(host) == consumer { // else the annotation outlived the association
				s.host = host
			}
			return nil
		}
	}
	hosts := &metal3api.BareMetalHostList{}
	if err := r.Client.List(ctx, hosts, client.InNamespace(namespace), client.MatchingFields{hostByConsumer: consumer.String()}); err != nil {
		return fmt.Errorf("cannot look for the BareMetalHost: %w", err)
	}
	if len(hosts.Items) == 1 {
		s.host = &hosts.Items[0]
	}
	return nil
}

func (r *Reconciler) gatherDataSecret(ctx context.Context, s *scope) (err error) {
	s.dataSecret, err = kube.Read(ctx, r.Metadata, client.ObjectKey{Namespace: s.config.Namespace, Name: s.config.Name}, kube.MetadataOf(kube.Secret))
	return err
}

func (s *scope) paused() bool {
	if s.cluster != nil {
		return annotations.IsPaused(s.cluster, s.config)
	}
	return annotations.HasPaused(s.config)
}

func (s *scope) deleting() bool { return !s.config.DeletionTimestamp.IsZero() }

// clusterDeleting tells whether the whole cluster goes, so that nothing needs to be cleaned up inside it.
func (s *scope) clusterDeleting() bool {
	return s.cluster == nil || !s.cluster.DeletionTimestamp.IsZero()
}

// hasBareMetalHost tells whether a BareMetalHost stands behind the infrastructure machine.
func (s *scope) hasBareMetalHost() bool {
	return s.infraMachine != nil && s.infraMachine.GetKind() == metal3.MachineKind
}

// hostChosen tells whether the infrastructure provider may have looked at the boot image or data already, so that another would come too
// late.
func (s *scope) hostChosen() bool {
	if s.host != nil || len(s.agents) > 0 || s.infraMachine.GetAnnotations()[metal3.HostAnnotation] != "" {
		return true
	}
	providerID, _, _ := unstructured.NestedString(s.infraMachine.Object, "spec", "providerID")
	provisioned, _, _ := unstructured.NestedBool(s.infraMachine.Object, "status", "initialization", "provisioned")
	ready, _, _ := unstructured.NestedBool(s.infraMachine.Object, "status", "ready")
	return providerID != "" || provisioned || ready
}

// wasInstalled tells whether the Machine's host has been installed before. Then nothing may ever install it again.
func (s *scope) wasInstalled() bool {
	return s.recordedInstalled() || s.machine != nil && metal3.HadNode(s.machine)
}

// recordedInstalled tells whether the host was reported as installed.
func (s *scope) recordedInstalled() bool {
	condition := s.recorded(bootstrapv1.HostInstalledCondition)
	return condition != nil && condition.Status == metav1.ConditionTrue
}

// dataHandedOut tells whether Cluster API was told the name of the bootstrap data secret.
func (s *scope) dataHandedOut() bool {
	return s.config.Status.DataSecretName != ""
}

// role is the one that the host plays in the cluster.
func (s *scope) role() string {
	if _, ok := s.machine.Labels[clusterv1.MachineControlPlaneLabel]; ok {
		return string(models.HostRoleMaster)
	}
	return string(models.HostRoleWorker)
}

// installation is what assisted-service says of the cluster.
func (s *scope) installation() assisted.Installation { return assisted.Observe(s.install) }
