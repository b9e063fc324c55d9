// Package gather reads all objects that a reconcile needs.
package gather

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"
	"sigs.k8s.io/cluster-api/util/labels/format"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/bootmode"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/claims"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/hostnetwork"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/hostrole"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/informer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/ownership"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/writer"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// Gatherer reads the facts about a config.
type Gatherer struct {
	client   client.Reader
	metadata client.Reader
	writer   *writer.Writer
	claims   *claims.Checker
	// metal3 is true once BareMetalHosts are served and watched.
	metal3 *atomic.Bool
	// watch starts to watch the infrastructure machines of a kind.
	watch func(ctx context.Context, infraMachine *unstructured.Unstructured) error
	// hosts records the configs that wait for any BareMetalHost.
	hosts *reconcile.Waiters
}

// New returns a Gatherer. metadata reads the metadata of Secrets from the cache. metal3 is true once BareMetalHosts are
// served and watched. watch starts to watch the infrastructure machines of a kind.
func New(
	w *writer.Writer, metadata client.Reader, c *claims.Checker, metal3 *atomic.Bool,
	watch func(ctx context.Context, infraMachine *unstructured.Unstructured) error,
) *Gatherer {
	return &Gatherer{
		client: w.Client, metadata: metadata, writer: w, claims: c, metal3: metal3, watch: watch, hosts: reconcile.NewWaiters(),
	}
}

// Forget drops the record of a deleted config.
func (g *Gatherer) Forget(config types.NamespacedName) { g.hosts.End(config) }

// WaitingForHost returns the configs of a namespace that wait for any BareMetalHost.
func (g *Gatherer) WaitingForHost(namespace string) []types.NamespacedName {
	return g.hosts.Of(namespace, anyHost)
}

// Gather reads all objects that a reconcile needs, except those that most reconciles do not need. The phases read
// the latter. First, the content of Secrets and ConfigMaps, which is not cached: certificate authority and
// metadata of the host. Second, whether a Secret or ConfigMap that the user names exists, once an object is to be
// created from it. Third, Agents of other InfraEnvs with the MAC addresses of a host that is not identified yet.
func (g *Gatherer) Gather(ctx context.Context, config *bootstrapv1.OpenshiftAssistedConfig) (*scope.Scope, error) {
	s := scope.New(&facts.Facts{Config: config})
	gatherMachine := func(ctx context.Context, f *facts.Facts) error { return claims.GatherMachine(ctx, g.client, f) }
	made := func(_ context.Context, f *facts.Facts) error { g.addMade(f, &s.Again); return nil }
	steps := []func(context.Context, *facts.Facts) error{
		gatherMachine, g.gatherInfraEnvs, g.gatherCluster, g.gatherInfraMachine, g.Host, dropForeignInfraEnvs, made, g.gatherAgents,
		g.gatherShared, g.gatherWaiting, g.claims.Gather, g.gatherDataSecret, g.gatherFencing, g.gatherNetworks,
	}
	for _, step := range steps {
		if err := step(ctx, s.Facts); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (g *Gatherer) gatherInfraEnvs(ctx context.Context, f *facts.Facts) error {
	list := &aiv1beta1.InfraEnvList{}
	if err := g.client.List(ctx, list, client.InNamespace(f.Config.Namespace),
		client.MatchingFields{informer.InfraEnvByConfig: format.MustFormatValue(f.Config.Name)}); err != nil {
		return fmt.Errorf("cannot look for InfraEnvs: %w", err)
	}
	for i := range list.Items {
		f.InfraEnvs = append(f.InfraEnvs, &list.Items[i])
	}
	if f.Machine == nil {
		return g.gatherLeftInfraEnv(ctx, f)
	}
	var err error
	if f.Namesake, err = kube.Read(ctx, g.client, client.ObjectKey{Namespace: f.Config.Namespace, Name: f.Machine.Name},
		&aiv1beta1.InfraEnv{}); err != nil || f.Namesake == nil {
		return err
	}
	if f.NamesakeUnlabeled = unlabeled(f.Namesake); f.NamesakeUnlabeled {
		f.InfraEnvs = append(f.InfraEnvs, f.Namesake)
	}
	return nil
}

// unlabeled reports whether we created an InfraEnv, and another client removed the label by which we find the
// InfraEnv.
func unlabeled(infraEnv *aiv1beta1.InfraEnv) bool {
	_, labeled := infraEnv.Labels[bootstrapv1.ConfigNameLabel]
	return !labeled && writer.Wrote(infraEnv)
}

// dropForeignInfraEnvs keeps only the InfraEnvs of the config: their Agents count, and the InfraEnvs are deleted
// together with the config. It runs after gatherCluster, because the InfraEnvs record the UID of the Cluster. It runs after
// Host, because without a host an InfraEnv whose field managers were lost is foreign.
func dropForeignInfraEnvs(_ context.Context, f *facts.Facts) error {
	f.InfraEnvs = slices.DeleteFunc(f.InfraEnvs, func(e *aiv1beta1.InfraEnv) bool {
		return ownership.ForeignInfraEnv(f, e, writer.Wrote(e)) != ""
	})
	if f.Namesake != nil {
		f.NamesakeForeign = ownership.ForeignInfraEnv(f, f.Namesake, writer.Wrote(f.Namesake))
		f.NamesakeUnlabeled = f.NamesakeUnlabeled && f.NamesakeForeign == ""
	}
	return nil
}

// gatherLeftInfraEnv finds the InfraEnv without label of a deleted Machine. The config mostly has the name of that
// Machine. If a Machine of that name exists, the InfraEnv belongs to the existing Machine.
func (g *Gatherer) gatherLeftInfraEnv(ctx context.Context, f *facts.Facts) error {
	key := client.ObjectKeyFromObject(f.Config)
	left, err := kube.Read(ctx, g.client, key, &aiv1beta1.InfraEnv{})
	if err != nil || left == nil || !unlabeled(left) {
		return err
	}
	machine, err := kube.Read(ctx, g.client, key, &clusterv1.Machine{})
	if err != nil || machine != nil {
		return err
	}
	f.InfraEnvs = append(f.InfraEnvs, left)
	return nil
}

func (g *Gatherer) gatherCluster(ctx context.Context, f *facts.Facts) error {
	name := f.ClusterName()
	if name == "" {
		return nil
	}
	var err error
	if f.Cluster, err = kube.Read(ctx, g.client, client.ObjectKey{Namespace: f.Config.Namespace, Name: name},
		&clusterv1.Cluster{}); err != nil || f.Cluster == nil {
		return err
	}
	installation := f.Cluster.Spec.ControlPlaneRef.Name
	if installation == "" {
		return nil
	}
	if f.Deployment, err = kube.Read(ctx, g.client, client.ObjectKey{Namespace: f.Config.Namespace, Name: installation},
		&hivev1.ClusterDeployment{}); err != nil {
		return err
	}
	if f.Install, err = kube.Read(ctx, g.client, client.ObjectKey{Namespace: f.Config.Namespace, Name: installation},
		&hiveext.AgentClusterInstall{}); err != nil || f.Installation().Started {
		return err
	}
	return g.gatherControlPlane(ctx, f)
}

// gatherControlPlane reads whether the control plane runs, which assisted-service does not report.
func (g *Gatherer) gatherControlPlane(ctx context.Context, f *facts.Facts) error {
	machines := &clusterv1.MachineList{}
	err := g.client.List(ctx, machines, client.InNamespace(f.Config.Namespace), client.UnsafeDisableDeepCopy,
		client.MatchingLabels{clusterv1.ClusterNameLabel: f.Cluster.Name}, client.HasLabels{clusterv1.MachineControlPlaneLabel})
	if err != nil {
		return fmt.Errorf("cannot look for the control plane's Machines: %w", err)
	}
	f.ControlPlaneRuns = slices.ContainsFunc(machines.Items, func(m clusterv1.Machine) bool { return metal3.HadNode(&m) })
	return nil
}

// gatherAgents lists the Agents of the InfraEnvs. Some versions of assisted-service leave Agents behind when their
// InfraEnv is deleted. Such Agents are found by the name of the InfraEnv, which is the Machine's name.
func (g *Gatherer) gatherAgents(ctx context.Context, f *facts.Facts) error {
	var infraEnvs []string
	for _, infraEnv := range f.InfraEnvs {
		infraEnvs = append(infraEnvs, infraEnv.Name)
	}
	if f.Deleting() && f.Machine != nil && f.Namesake == nil {
		infraEnvs = append(infraEnvs, f.Machine.Name)
	}
	for _, name := range infraEnvs {
		agents := &aiv1beta1.AgentList{}
		if err := g.client.List(ctx, agents, client.InNamespace(f.Config.Namespace),
			client.MatchingFields{informer.AgentByInfraEnv: name}); err != nil {
			return fmt.Errorf("cannot look for Agents: %w", err)
		}
		for i := range agents.Items {
			agent := &agents.Items[i]
			if err := g.gatherOwner(ctx, f, agent); err != nil {
				return err
			}
			if !f.BoundElsewhere(agent) || len(f.InfraEnvs) > 0 {
				f.Agents = append(f.Agents, agent)
			}
		}
	}
	slices.SortFunc(f.Agents, func(a, b *aiv1beta1.Agent) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// gatherOwner records an Agent of another cluster. It decides only if the Machine's Cluster, which would otherwise
// decide, is deleted.
func (g *Gatherer) gatherOwner(ctx context.Context, f *facts.Facts, agent *aiv1beta1.Agent) error {
	ref := agent.Spec.ClusterDeploymentName
	if f.Cluster != nil || ref == nil || ref.Namespace != f.Config.Namespace {
		return nil
	}
	deployment, err := kube.Read(ctx, g.client, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, &hivev1.ClusterDeployment{})
	if err != nil {
		return err
	}
	if deployment != nil && deployment.Labels[clusterv1.ClusterNameLabel] != f.Config.Labels[clusterv1.ClusterNameLabel] {
		f.ForeignDeployments = append(f.ForeignDeployments, ref.Name)
	}
	return nil
}

func (g *Gatherer) gatherInfraMachine(ctx context.Context, f *facts.Facts) error {
	if f.Machine == nil || !f.Machine.Spec.InfrastructureRef.IsDefined() || f.Deleting() || !kube.Readable(f.Machine.Spec.InfrastructureRef) {
		return nil
	}
	infraMachine, err := external.GetObjectFromContractVersionedRef(ctx, g.client, f.Machine.Spec.InfrastructureRef, f.Machine.Namespace)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		f.InfraMachineFailure = err // for example, a CRD without the label of the contract
		return nil                  //nolint:nilerr // the phase that needs the object reports and returns the error
	}
	// The object may belong to a former Machine of the same name.
	if metav1.IsControlledBy(infraMachine, f.Machine) {
		f.InfraMachine = infraMachine
		if f.BootMode, err = bootmode.Choose(f.Config.Status.BootMode, f.Config.Spec.BootMode, infraMachine); err != nil {
			f.BootModeProblem = err.Error()
		}
	}
	return g.watch(ctx, infraMachine)
}

// Host finds the BareMetalHost behind the Metal3Machine: by CAPM3's annotation on the Metal3Machine, else by
// the consumer that the BareMetalHost names. CAPM3 takes only hosts of the Metal3Machine's namespace. Any user who
// may edit the Metal3Machine may edit the annotation, and conditions publish facts about the host. So the host
// must name the Metal3Machine in turn.
func (g *Gatherer) Host(ctx context.Context, f *facts.Facts) error {
	if !g.metal3.Load() || !f.HasBareMetalHost() {
		return nil
	}
	namespace, consumer := f.InfraMachine.GetNamespace(), client.ObjectKeyFromObject(f.InfraMachine)
	if _, name, ok := strings.Cut(f.InfraMachine.GetAnnotations()[metal3.HostAnnotation], "/"); ok {
		host, err := kube.Read(ctx, g.client, client.ObjectKey{Namespace: namespace, Name: name},
			&metal3.Host{TypeMeta: metav1.TypeMeta{Kind: metal3.HostKind}})
		if err != nil {
			return err
		}
		if host != nil {
			if metal3.ConsumerOf(host) == consumer { // otherwise the annotation outlived the association
				f.Host = host
				return nil
			}
			if host.Spec.ConsumerRef != nil {
				f.TakenHost = host
			}
			return nil
		}
	}
	if f.NeedsHost() {
		g.hosts.Begin(client.ObjectKeyFromObject(f.Config), anyHost)
	}
	var err error
	if f.Hosts, err = g.hostsIn(ctx, namespace); err != nil {
		return err
	}
	f.Host = hostOf(f.Hosts, consumer)
	return nil
}

// gatherShared finds the identity values that the host shares with other hosts of the namespace, and that
// therefore do not identify the host. It does so until an approved Agent proves which Agent runs on the host.
// CAPM3 and the Bare Metal Operator keep all hosts of a pool in one namespace.
func (g *Gatherer) gatherShared(ctx context.Context, f *facts.Facts) error {
	if f.Host == nil || f.IsFinished() || f.ApprovedAgent() != nil {
		return nil
	}
	hosts := f.Hosts
	// CAPM3's annotation names the host, so that Host did not list the hosts.
	if hosts == nil {
		var err error
		if hosts, err = g.hostsIn(ctx, f.Host.Namespace); err != nil {
			return err
		}
	}
	f.Shared = sync.OnceValue(func() metal3.SharedIdentity { return metal3.SharedBy(f.Host, hosts) })
	return nil
}

// anyHost is the value of configs whose Machines have no host.
const anyHost = "host"

// hostsIn lists the BareMetalHosts of a namespace, sorted by name, for reading only. It reads the whole namespace,
// because an index would grow with all hosts of the hub, and few Machines need the list. These are the Machines to
// which CAPM3 has not given a host, or whose Agent is not approved.
func (g *Gatherer) hostsIn(ctx context.Context, namespace string) ([]*metal3.Host, error) {
	list := &metal3.HostList{}
	if err := g.client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot look for the BareMetalHost: %w", err)
	}
	hosts := make([]*metal3.Host, len(list.Items))
	for i := range list.Items {
		hosts[i] = &list.Items[i]
	}
	slices.SortFunc(hosts, func(a, b *metal3.Host) int { return strings.Compare(a.Name, b.Name) })
	return hosts, nil
}

// hostOf returns the one BareMetalHost that names a Metal3Machine as its consumer; nil if none or several do.
func hostOf(hosts []*metal3.Host, consumer client.ObjectKey) *metal3.Host {
	var found *metal3.Host
	for _, host := range hosts {
		switch {
		case metal3.ConsumerOf(host) != consumer:
		case found != nil:
			return nil // several hosts name the consumer
		default:
			found = host
		}
	}
	return found.DeepCopy()
}

// gatherWaiting lists the Metal3Machines that wait for a host, as long as the Machine's own Metal3Machine waits.
func (g *Gatherer) gatherWaiting(ctx context.Context, f *facts.Facts) error {
	if !f.NeedsHost() {
		g.hosts.End(client.ObjectKeyFromObject(f.Config))
		return nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(f.InfraMachine.GetAPIVersion())
	list.SetKind(f.InfraMachine.GetKind() + "List")
	if err := g.client.List(ctx, list, client.InNamespace(f.InfraMachine.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("cannot look for Machines that wait for a host: %w", err)
	}
	given := sets.New[client.ObjectKey]()
	for _, host := range f.Hosts {
		given.Insert(metal3.ConsumerOf(host))
	}
	for i := range list.Items {
		machine := &list.Items[i]
		if machine.GetAnnotations()[metal3.HostAnnotation] == "" && machine.GetDeletionTimestamp() == nil &&
			!given.Has(client.ObjectKeyFromObject(machine)) {
			f.Waiting = append(f.Waiting, machine)
		}
	}
	slices.SortFunc(f.Waiting, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time), strings.Compare(a.GetName(), b.GetName()))
	})
	return nil
}

func (g *Gatherer) gatherDataSecret(ctx context.Context, f *facts.Facts) (err error) {
	f.DataSecret, err = kube.Read(ctx, g.metadata, client.ObjectKey{Namespace: f.Config.Namespace, Name: f.Config.Name},
		kube.MetadataOf(kube.Secret))
	return err
}

// gatherNetworks lists the NMStateConfigs that the config selects. An unusable selector selects none, and its
// phase reports the error.
func (g *Gatherer) gatherNetworks(ctx context.Context, f *facts.Facts) error {
	selector, err := metav1.LabelSelectorAsSelector(f.Config.Spec.NMStateConfigLabelSelector)
	if err != nil || !hostnetwork.Wanted(f.Config) {
		return nil //nolint:nilerr // the user's mistake, not a failure
	}
	list := &aiv1beta1.NMStateConfigList{}
	if err := g.client.List(ctx, list, client.InNamespace(f.Config.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return fmt.Errorf("cannot look for NMStateConfigs: %w", err)
	}
	for i := range list.Items {
		f.Networks = append(f.Networks, &list.Items[i])
	}
	slices.SortFunc(f.Networks, func(a, b *aiv1beta1.NMStateConfig) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// gatherFencing reads the metadata of the Secret with the copied credentials of the BMC.
func (g *Gatherer) gatherFencing(ctx context.Context, f *facts.Facts) (err error) {
	if !hostrole.Fenced(f) {
		return nil
	}
	f.FencingSecret, err = kube.Read(ctx, g.metadata, client.ObjectKey{Namespace: f.Config.Namespace, Name: hostrole.FencingSecretName(f)},
		kube.MetadataOf(kube.Secret))
	return err
}

// addMade adds the InfraEnv that was created a moment ago, as long as the cache does not have it.
func (g *Gatherer) addMade(f *facts.Facts, again *reconcile.Requeue) {
	key := client.ObjectKeyFromObject(f.Config)
	made, left := g.writer.Created.Pending(key, "")
	if left == 0 {
		return
	}
	if slices.ContainsFunc(f.InfraEnvs, func(e *aiv1beta1.InfraEnv) bool { return e.Name == made.Name }) {
		g.writer.Created.Forget(key) // the cache has it, and lacks it later only if it is deleted
		return
	}
	infraEnv := made.DeepCopy()
	f.InfraEnvs = append(f.InfraEnvs, infraEnv)
	if f.Namesake == nil && f.Machine != nil && f.Machine.Name == infraEnv.Name {
		f.Namesake = infraEnv
	}
	again.In(left)
}
