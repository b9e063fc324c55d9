package bench

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/results"
)

// The measured hand-overs: the act of another client, and the following act of one of our managers.
const (
	deploymentCreated   = "cluster infrastructure ready -> ClusterDeployment"
	bootDataHandedOut   = "discovery image ready -> data handed out"
	hostBound           = "Agent known-unbound -> bound"
	hostApproved        = "Agent bound and known -> approved"
	kubeconfigPublished = "kubeconfig written -> published"
	lateWorkerBound     = "adding-hosts -> late worker bound"
	addedHostBound      = "day 2: Agent known-unbound -> bound"
	agentReleased       = "worker being deleted -> its Agent being deleted"
	memberRemoved       = "master waits for its hook -> removed from etcd, released"
	upgradeRequested    = "version changed -> requested from the cluster"
	upgradeReported     = "upgrade completed -> reported"
	machinesDeleted     = "control plane being deleted -> its Machines being deleted"
	clusterDeregistered = "last master deleted -> ClusterDeployment being deleted"
	controlPlaneGone    = "cluster deregistered -> control plane deleted"
	machineRuns         = "host installed -> Machine Running"
	masterReplaced      = "master deleted -> another one created"
)

// renewalAnnotation is on a published kubeconfig with a token of the control plane provider.
const renewalAnnotation = "controlplane.cluster.x-k8s.io/kubeconfig-renewal"

// handOvers are in the order in which they happen: in an installation, with a late worker, and in an installed cluster.
var (
	dayOneHandOvers = []string{deploymentCreated, bootDataHandedOut, hostBound, hostApproved, kubeconfigPublished}
	lateHandOvers   = []string{lateWorkerBound}
	dayTwoHandOvers = []string{
		upgradeRequested, upgradeReported, addedHostBound, agentReleased, memberRemoved, machinesDeleted, clusterDeregistered, controlPlaneGone,
	}
	handOvers = slices.Concat(dayOneHandOvers, lateHandOvers, dayTwoHandOvers)
)

// byOthers are hand-overs after acts of ours that depend on other controllers, so they have no target. For example,
// another master is created when the etcd operator of the cluster has finished the removal of the former one.
var byOthers = []string{machineRuns, masterReplaced}

// Facts. The subject of a fact is <namespace>/<name> of an object, except:
//
//   - writtenKubeconfig: <namespace>/<cluster>/<digest of the content>.
//   - Facts about upgrades: <namespace>/<cluster> <version>.
//   - Facts about Agents: <namespace>/<name> <UID>, because the next Agent of a host has the same name.
//   - masterGone: <namespace>/<cluster> <number of deleted masters>.
const (
	infrastructureReady = "Cluster's infrastructure is provisioned and its endpoint known"
	ownedByCluster      = "control plane is owned by its Cluster"
	pullSecretExists    = "pull secret exists"
	imageReady          = "InfraEnv has its image"
	hostChosen          = "infra machine has its BareMetalHost"
	agentDiscovered     = "Agent is known-unbound"
	machineDiscovered   = "Agent of the Machine is known-unbound"
	agentReady          = "Agent is bound, known and in sync"
	takesHosts          = "cluster accepts hosts before its installation"
	installing          = "cluster is being installed"
	hostInstalled       = "Agent of the Machine is installed"
	addsHosts           = "cluster adds hosts"
	metadataWritten     = "AgentClusterInstall names the kubeconfig"
	writtenKubeconfig   = "assisted-service has written this kubeconfig"
	clusterAvailable    = "Cluster is Available"
	machineRunning      = "Machine is running"
	configDeleted       = "bootstrap config is being deleted"
	waitsForHook        = "Machine waits for its pre-terminate hook"
	versionWanted       = "spec.distributionVersion is this one"
	upgradeShown        = "control plane shows the upgrade"
	upgradeCompleted    = "history of the cluster shows Completed"
	upgradeOver         = "control plane shows no upgrade any more"
	beingDeleted        = "control plane is being deleted"
	masterAlive         = "control-plane Machine exists"
	masterGone          = "number of deleted control-plane Machines"
	mastersGone         = "no control-plane Machine exists"
	deploymentGone      = "ClusterDeployment is deleted"
	installGone         = "AgentClusterInstall is deleted"
)

// observer records the states of the management cluster. It watches causes and effects alike, so that the delay of the
// watches cancels out. The audit log has the times of the API server, but not the content of writes. So it does not show
// which patch of a status made a condition true.
type observer struct {
	*journal

	lives sync.Mutex
	// clusters are the Clusters of seen Machines, and masters the control-plane Machines of each Cluster.
	clusters map[string]string
	masters  map[string]*masters
}

// masters are the control-plane Machines of a Cluster: the wanted number, those that exist, and the numbers of created
// and deleted ones.
type masters struct {
	wanted           int
	alive            map[string]bool
	created, deleted int
}

func newObserver() *observer {
	return &observer{journal: newJournal(), clusters: map[string]string{}, masters: map[string]*masters{}}
}

// observe watches all measured kinds until ctx ends, in some namespaces or in all. It returns when all objects were seen.
func observe(ctx context.Context, config *rest.Config, scheme *runtime.Scheme, namespaces map[string]cache.Config) (*observer, error) {
	watches, err := cache.New(config, cache.Options{
		Scheme: scheme, DefaultTransform: cache.TransformStripManagedFields(),
		DefaultNamespaces: namespaces,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot watch the management cluster: %w", err)
	}
	o := newObserver()
	go func() {
		// It ends with ctx.
		_ = watches.Start(ctx)
	}()
	for _, kind := range []client.Object{
		&clusterv1.Cluster{}, &clusterv1.Machine{}, &controlplanev1.OpenshiftAssistedControlPlane{},
		&bootstrapv1.OpenshiftAssistedConfig{}, &hivev1.ClusterDeployment{},
		&hiveext.AgentClusterInstall{}, &aiv1beta1.InfraEnv{}, &aiv1beta1.Agent{}, &metal3api.BareMetalHost{}, &corev1.Secret{},
		&corev1.ConfigMap{},
	} {
		informer, err := watches.GetInformer(ctx, kind)
		if err != nil {
			return nil, fmt.Errorf("cannot watch %T: %w", kind, err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { o.see(object, time.Now()) },
			UpdateFunc: func(_, object any) { o.see(object, time.Now()) },
			DeleteFunc: func(object any) { o.seeGone(object, time.Now()) },
		}); err != nil {
			return nil, fmt.Errorf("cannot watch %T: %w", kind, err)
		}
	}
	if !watches.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("cannot watch the management cluster: %w", context.Cause(ctx))
	}
	return o, nil
}

// await waits until done returns true. It calls done after each change.
func (o *observer) await(ctx context.Context, what string, done func() bool) error {
	for {
		o.mu.Lock()
		changed := o.changed
		o.mu.Unlock()
		if done() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%s did not happen: %w", what, context.Cause(ctx))
		}
	}
}

// see records the state of an object at a time.
func (o *observer) see(object any, at time.Time) {
	switch v := object.(type) {
	case *clusterv1.Cluster:
		ready := ptr.Deref(v.Status.Initialization.InfrastructureProvisioned, false) && v.Spec.ControlPlaneEndpoint.IsValid()
		o.note(infrastructureReady, name(v), ready, at)
		o.note(clusterAvailable, name(v), meta.IsStatusConditionTrue(v.Status.Conditions, clusterv1.ClusterAvailableCondition), at)
	case *clusterv1.Machine:
		o.note(machineRunning, name(v), v.Status.Phase == string(clusterv1.MachinePhaseRunning) && v.Status.NodeRef.Name != "", at)
		o.seeRunning(name(v), at)
		o.seeMachine(v, at)
		o.seeDeletion(v, at)
	case *controlplanev1.OpenshiftAssistedControlPlane:
		owned := slices.ContainsFunc(v.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == clusterv1.ClusterKind })
		o.note(ownedByCluster, name(v), owned, at)
		o.note(beingDeleted, name(v), !v.DeletionTimestamp.IsZero(), at)
		o.seeDeployable(v)
		o.seeControlPlane(v, at)
	case *bootstrapv1.OpenshiftAssistedConfig:
		o.note(configDeleted, name(v), !v.DeletionTimestamp.IsZero(), at)
		o.expect(bootDataHandedOut, name(v), need{{imageReady, name(v)}})
		if ptr.Deref(v.Status.Initialization.DataSecretCreated, false) { // its InfraEnv has the same name
			o.act(effect{handOver: bootDataHandedOut, subject: name(v), at: at, needs: []need{{{imageReady, name(v)}}}})
		}
	case *hivev1.ClusterDeployment:
		o.seeDeployment(v, at)
	case *hiveext.AgentClusterInstall:
		o.seeInstall(v, at)
	case *aiv1beta1.InfraEnv:
		created := conditionsv1.IsStatusConditionTrue(v.Status.Conditions, aiv1beta1.ImageCreatedCondition)
		o.note(imageReady, name(v), created && (v.Status.ISODownloadURL != "" || v.Status.BootArtifacts.DiscoveryIgnitionURL != ""), at)
	case *aiv1beta1.Agent:
		if !o.seeReference(agentReference, v, at) {
			o.seeAgent(v, at)
		}
	case *metal3api.BareMetalHost:
		if consumer := v.Spec.ConsumerRef; consumer != nil {
			o.note(hostChosen, consumer.Namespace+"/"+consumer.Name, true, at)
		}
	case *corev1.Secret:
		o.seeSecret(v, at)
	case *corev1.ConfigMap:
		o.seeReference(results.Reference, v, at)
	}
}

// seeDeployment records the creation of a ClusterDeployment for a control plane. In all samples the control plane, its
// Cluster and the ClusterDeployment have the same name. The look-up of the release image is part of the reaction time.
func (o *observer) seeDeployment(v *hivev1.ClusterDeployment, at time.Time) {
	if !v.DeletionTimestamp.IsZero() {
		o.act(effect{handOver: clusterDeregistered, subject: name(v), at: at, needs: deregistration(name(v))})
	}
	needs := []need{{{infrastructureReady, name(v)}}, {{ownedByCluster, name(v)}}}
	if ref := v.Spec.PullSecretRef; ref != nil {
		needs = append(needs, need{{pullSecretExists, v.Namespace + "/" + ref.Name}})
	}
	o.act(effect{handOver: deploymentCreated, subject: name(v), at: at, needs: needs})
}

// seeDeployable expects a ClusterDeployment for a control plane.
func (o *observer) seeDeployable(v *controlplanev1.OpenshiftAssistedControlPlane) {
	needs := []need{{{infrastructureReady, name(v)}}, {{ownedByCluster, name(v)}}}
	if ref := v.Spec.Config.PullSecretRef; ref != nil {
		needs = append(needs, need{{pullSecretExists, v.Namespace + "/" + ref.Name}})
	}
	o.expect(deploymentCreated, name(v), needs...)
}

// seeInstall records the state of a cluster in assisted-service, such as the states in which it binds hosts (swagger:
// cluster.status).
func (o *observer) seeInstall(v *hiveext.AgentClusterInstall, at time.Time) {
	state := v.Status.DebugInfo.State
	o.note(takesHosts, name(v), slices.Contains([]string{"insufficient", "pending-for-input", "ready"}, state), at)
	o.note(installing, name(v), slices.Contains([]string{"installing", "finalizing"}, state), at)
	o.note(addsHosts, name(v), state == "adding-hosts", at)
	o.note(installGone, name(v), false, at)
	metadata := v.Spec.ClusterMetadata
	o.note(metadataWritten, name(v), metadata != nil && metadata.AdminKubeconfigSecretRef.Name != "", at)
}

// seeAgent records the state of an Agent. Its InfraEnv, Machine and infra machine have the same name.
func (o *observer) seeAgent(v *aiv1beta1.Agent, at time.Time) {
	state, cluster, agent := v.Status.DebugInfo.State, v.Spec.ClusterDeploymentName, agentOf(v)
	discovered := state == "known-unbound" && len(v.Status.Inventory.Interfaces) > 0
	o.note(agentDiscovered, agent, discovered, at)
	machine := v.Namespace + "/" + v.Labels[aiv1beta1.InfraEnvNameLabel]
	o.note(machineDiscovered, machine, discovered, at)
	o.note(hostInstalled, machine, state == aiv1beta1.HostStatusInstalled || state == aiv1beta1.HostStatusAddedToExistingCluster, at)
	o.seeRunning(machine, at)
	synced := conditionsv1.IsStatusConditionTrue(v.Status.Conditions, aiv1beta1.SpecSyncedCondition)
	joined := cluster != nil && conditionsv1.IsStatusConditionTrue(v.Status.Conditions, aiv1beta1.BoundCondition)
	o.note(agentReady, agent, joined && synced && state == "known" && v.Status.Role == v.Spec.Role, at)
	if of := o.clusterOf(machine); of != "" {
		o.expect(hostBound, agent, binding(agent, machine, of)...)
	}
	if cluster == nil {
		return
	}
	if v.Spec.Role == aiv1beta1.HostRoleWorker {
		o.expect(agentReleased, agent, need{{configDeleted, machine}})
		if !v.DeletionTimestamp.IsZero() {
			o.act(effect{handOver: agentReleased, subject: agent, at: at, needs: []need{{{configDeleted, machine}}}})
		}
	}
	o.act(effect{handOver: hostBound, subject: agent, at: at, needs: binding(agent, machine, cluster.Namespace+"/"+cluster.Name)})
	o.expect(hostApproved, agent, need{{agentReady, agent}})
	if v.Spec.Approved {
		o.act(effect{handOver: hostApproved, subject: agent, at: at, needs: []need{{{agentReady, agent}}}})
	}
}

// binding returns the needs of the binding of a Machine's host to a cluster.
func binding(agent, machine, cluster string) []need {
	return []need{{{agentDiscovered, agent}}, {{hostChosen, machine}}, {{takesHosts, cluster}, {addsHosts, cluster}}}
}

// seeRunning records that an installed Machine runs. A Machine may run before assisted-service reports that its host is
// installed; then the reaction takes no time.
func (o *observer) seeRunning(machine string, at time.Time) {
	installed, running := fact{hostInstalled, machine}, fact{machineRunning, machine}
	_, isInstalled := o.since(installed)
	if _, isRunning := o.since(running); isInstalled && isRunning {
		o.act(effect{handOver: machineRuns, subject: machine, at: at, needs: []need{{installed}}})
	}
}

func (o *observer) seeSecret(v *corev1.Secret, at time.Time) {
	cluster := v.Labels[clusterv1.ClusterNameLabel]
	switch {
	case v.Type == corev1.SecretTypeDockerConfigJson:
		o.note(pullSecretExists, name(v), true, at)
	case v.Labels["hive.openshift.io/secret-type"] == "kubeconfig":
		of := strings.TrimSuffix(name(v), "-admin-kubeconfig") + "/"
		current := of + digest(v.Data["kubeconfig"])
		for _, former := range o.holding(writtenKubeconfig, beginsWith(of)) {
			o.note(writtenKubeconfig, former, former == current, at)
		}
		o.note(writtenKubeconfig, current, true, at)
		o.expect(kubeconfigPublished, current, publishing(current)...)
	case v.Annotations[renewalAnnotation] != "":
		// This kubeconfig of the provider does not depend on assisted-service.
	case v.Type == clusterv1.ClusterSecretType && v.Name == cluster+"-kubeconfig":
		content := v.Namespace + "/" + cluster + "/" + digest(v.Data["value"])
		o.act(effect{handOver: kubeconfigPublished, subject: content, at: at, needs: publishing(content)})
	}
}

// publishing returns the needs of the publication of a kubeconfig, whose subject is that of writtenKubeconfig.
func publishing(content string) []need {
	return []need{{{writtenKubeconfig, content}}, {{metadataWritten, content[:strings.LastIndex(content, "/")]}}}
}

func name(object client.Object) string { return object.GetNamespace() + "/" + object.GetName() }

// agentOf returns the subject of an Agent, which differs from former Agents of its host.
func agentOf(v *aiv1beta1.Agent) string { return name(v) + " " + string(v.UID) }

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8])
}

// ofCluster selects the subjects of a cluster.
func ofCluster(key types.NamespacedName) func(string) bool { return beginsWith(key.String() + "-") }

func beginsWith(prefix string) func(string) bool {
	return func(subject string) bool { return strings.HasPrefix(subject, prefix) }
}

// unmatched are acts without a seen cause, and causes without a seen act.
type unmatched struct{ unexplained, unanswered []effect }

// measured returns the reactions by hand-over, and the unmatched acts and causes. A worker that was bound when its
// cluster began to add hosts is a late worker.
func (o *observer) measured() (map[string][]reaction, unmatched) {
	byHandOver := map[string][]reaction{}
	paired, unexplained := o.reactions()
	for _, r := range paired {
		if r.handOver == hostBound && slices.ContainsFunc(r.causes, func(f fact) bool { return f.what == addsHosts }) {
			r.handOver = addedHostBound
			if r.decisive.what == addsHosts {
				r.handOver = lateWorkerBound
			}
		}
		byHandOver[r.handOver] = append(byHandOver[r.handOver], r)
	}
	return byHandOver, unmatched{unexplained, o.unanswered()}
}
