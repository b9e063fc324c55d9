package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	"github.com/openshift/assisted-service/models"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/unreliable"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// act does something to a cluster, or to all. hit is false where there was nothing that it could be done to, or nobody to notice it.
type act func(r *round, ctx context.Context, dice *rand.Rand) (hit bool, err error)

// acts are those of a storm, by their names.
var acts = map[string]act{
	"kill-bootstrap":             killing(env.Bootstrap),
	"kill-controlplane":          killing(env.ControlPlane),
	"second-bootstrap":           doubling(env.Bootstrap),
	"second-controlplane":        doubling(env.ControlPlane),
	"step-clock-bootstrap":       stepping(env.Bootstrap),
	"step-clock-controlplane":    stepping(env.ControlPlane),
	"stop-assisted-service":      (*round).stopService,
	"cut-cluster-off":            (*round).cutOff,
	"boot-stranger":              (*round).bootStranger,
	"claim-server":               (*round).claimServer,
	"delete-infraenv":            (*round).deleteInfraEnv,
	"delete-clusterdeployment":   deletingRegistration(func() client.Object { return &hivev1.ClusterDeployment{} }, single...),
	"delete-agentclusterinstall": deletingRegistration(func() client.Object { return &hiveext.AgentClusterInstall{} }, "AgentClusterInstall"),
	"delete-agent":               (*round).deleteAgent,
	"delete-kubeconfig":          (*round).deleteKubeconfig,
	"delete-bootstrap-data":      (*round).deleteBootstrapData,
	"replace-pull-secret":        (*round).replacePullSecret,
	"replace-nmstateconfig":      (*round).replaceNetwork,
	"edit-agent":                 (*round).editAgent,
	"strip-infraenv":             stripping(func() client.ObjectList { return &aiv1beta1.InfraEnvList{} }),
	"strip-clusterdeployment":    stripping(func() client.ObjectList { return &hivev1.ClusterDeploymentList{} }),
	"edit-infraenv":              (*round).editInfraEnv,
	"forge-certificate-request":  (*round).forge,
	"lend-host":                  (*round).lendHost,
}

// actNames are in an order of their own, for seeds to mean the same.
var actNames = slices.Sorted(maps.Keys(acts))

const (
	shortestOutage, longestOutage = 2 * time.Second, 10 * time.Second
	// How long nothing is started for an object to go, which may wait for assisted-service to be back.
	longestGoing = 2 * longestOutage
	// A second manager lives at least so long, and until both have written something.
	secondLife, longestSecondLife = 15 * time.Second, 45 * time.Second
	shortestStep, longestStep     = 8 * time.Second, 25 * time.Second
)

// steps are by how much clocks are wrong: those of servers are before they have asked anybody for the time, by minutes,
// by a time zone, or by the age of a battery.
var steps = []time.Duration{
	-400 * 24 * time.Hour, -26 * time.Hour, -time.Hour, -5 * time.Minute, 5 * time.Minute, time.Hour, 26 * time.Hour, 400 * 24 * time.Hour,
}

func chosen[T any](dice *rand.Rand, from []T) *T {
	if len(from) == 0 {
		return nil
	}
	return &from[dice.IntN(len(from))]
}

// killing ends a manager as a crash does; who looks after it starts it again.
func killing(name string) act {
	return func(r *round, _ context.Context, _ *rand.Rand) (bool, error) {
		manager := r.lab.Env.Manager(name)
		if !manager.Running() {
			return false, nil
		}
		manager.Kill()
		return true, nil
	}
}

// stopService lets assisted-service not answer for a while.
func (r *round) stopService(ctx context.Context, dice *rand.Rand) (bool, error) {
	before := r.lab.Service.Missed()
	r.lab.Service.Leave()
	defer r.lab.Service.Return()
	wait(ctx, between(dice, shortestOutage, longestOutage))
	return r.lab.Service.Missed() > before, nil
}

// cutOff lets nobody reach the API of a cluster for a while.
func (r *round) cutOff(ctx context.Context, dice *rand.Rand) (bool, error) {
	t := chosen(dice, r.travelling())
	if t == nil {
		return false, nil
	}
	way := r.toClusters[(*t).namespace]
	before := way.Counts()[unreliable.RequestLost]
	way.Storm(r.seed, unreliable.Silence)
	defer r.stormOf((*t).namespace)
	wait(ctx, between(dice, shortestOutage, longestOutage))
	return way.Counts()[unreliable.RequestLost] > before, nil
}

// stepping lets the clock of a manager be wrong for a while.
func stepping(name string) act {
	return func(r *round, ctx context.Context, dice *rand.Rand) (bool, error) {
		way, by := r.own[name], *chosen(dice, steps)
		if way.Ahead() != 0 {
			return false, nil // it is wrong already
		}
		before := way.Moved()
		way.Step(by)
		defer way.Step(0)
		wait(ctx, between(dice, shortestStep, longestStep))
		return way.Moved() > before, nil
	}
}

// wait ends with the time, or with ctx.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// doubling runs a second manager beside the first for a while, as with a lease that both believe to hold.
func doubling(name string) act {
	return func(r *round, ctx context.Context, _ *rand.Rand) (bool, error) {
		second, err := r.second(name)
		if err != nil {
			return false, err
		}
		living, cancel := context.WithTimeout(ctx, longestSecondLife)
		defer cancel()
		ways := []*unreliable.HubWay{r.own[name], r.own[secondOf(name)]}
		before := []int{ways[0].Writes(), ways[1].Writes()}
		both := func() bool { return ways[0].Writes() > before[0] && ways[1].Writes() > before[1] }
		_ = second.Start(living) // it may well not get ready in a storm
		defer second.Kill()
		wait(living, secondLife)
		for living.Err() == nil && !both() {
			wait(living, poll)
		}
		return both(), nil
	}
}

// machine chooses a Machine of a cluster on its journey, of those that fit.
func (r *round) machine(ctx context.Context, dice *rand.Rand, fits func(*lab.State, lab.Machine) bool) (*traveller,
	*lab.State, *lab.Machine,
) {
	t := chosen(dice, r.travelling())
	if t == nil {
		return nil, nil, nil
	}
	state, err := (*t).cluster.State(ctx)
	if err != nil || state.Cluster == nil {
		return nil, nil, nil
	}
	machines := slices.DeleteFunc(slices.Clone(state.Machines), func(m lab.Machine) bool { return !fits(state, m) })
	return *t, state, chosen(dice, machines)
}

func anyMachine(*lab.State, lab.Machine) bool { return true }

// calmly does something to a cluster while no host of it is being installed, on the first day or later, and none starts
// to be: who then deletes what the installation is about asks for its end. Everybody has to see it so, for the managers
// go by what they saw last.
func (r *round) calmly(ctx context.Context, t *traveller, act func() (bool, error)) (hit bool, err error) {
	_, err = r.lab.Service.Still(t.cluster.Key(), func() error {
		state, err := t.cluster.State(ctx)
		if err != nil || !isCalm(state) {
			return err
		}
		hit, err = act()
		return err
	})
	return hit, err
}

// isCalm reports whether a cluster shows that no host of it is being installed.
func isCalm(s *lab.State) bool {
	if s.ControlPlane != nil && !slices.Contains([]controlplanev1.InstallationPhase{
		"", controlplanev1.InstallationPending, controlplanev1.InstallationInstalled,
	}, s.ControlPlane.Status.Installation.Phase) {
		return false
	}
	if slices.ContainsFunc(s.Agents, func(a aiv1beta1.Agent) bool {
		return a.Spec.Approved && slices.Contains(underWay, a.Status.DebugInfo.State)
	}) {
		return false
	}
	return s.Installation == nil || slices.Contains([]string{
		"", models.ClusterStatusInsufficient, models.ClusterStatusReady, models.ClusterStatusPendingForInput, models.ClusterStatusAddingHosts,
	}, s.Installation.Status.DebugInfo.State)
}

// underWay are the states of a host that was approved and is not installed yet.
var underWay = []string{
	models.HostStatusKnown, models.HostStatusPreparingForInstallation, models.HostStatusPreparingSuccessful,
	models.HostStatusInstalling, models.HostStatusInstallingInProgress, models.HostStatusInstallingPendingUserAction,
}

// bootStranger boots the image of a Machine on a server that is not its host.
func (r *round) bootStranger(ctx context.Context, dice *rand.Rand) (bool, error) {
	_, state, m := r.machine(ctx, dice, anyMachine)
	if m == nil {
		return false, nil
	}
	for _, infraEnv := range state.InfraEnvs {
		if infraEnv.Name == m.Name && infraEnv.Status.ISODownloadURL != "" {
			stranger, err := r.lab.Rack.BootUnmanaged(infraEnv.Status.ISODownloadURL,
				hosts.NewHardware("stranger-"+strconv.FormatUint(dice.Uint64(), 36)))
			if err != nil {
				return false, err
			}
			r.addStranger(stranger)
			return true, nil
		}
	}
	return false, nil
}

func (r *round) deleteInfraEnv(ctx context.Context, dice *rand.Rand) (bool, error) {
	t, _, m := r.machine(ctx, dice, func(_ *lab.State, m lab.Machine) bool { return m.DeletionTimestamp.IsZero() })
	if m == nil {
		return false, nil
	}
	return r.calmly(ctx, t, func() (bool, error) {
		return r.deleteWholly(ctx, &aiv1beta1.InfraEnv{}, t.namespace, m.Name, "InfraEnv")
	})
}

// deletingRegistration takes one of the objects that a cluster is registered by, which have its name.
func deletingRegistration(newObject func() client.Object, excused ...string) act {
	return func(r *round, ctx context.Context, dice *rand.Rand) (bool, error) {
		t, _, _ := r.machine(ctx, dice, anyMachine)
		if t == nil {
			return false, nil
		}
		return r.calmly(ctx, t, func() (bool, error) { return r.deleteWholly(ctx, newObject(), t.namespace, t.cluster.Name, excused...) })
	}
}

// deleteAgent takes an Agent of a host that is not being installed.
func (r *round) deleteAgent(ctx context.Context, dice *rand.Rand) (bool, error) {
	t, agent := r.unapproved(ctx, dice)
	if agent == nil {
		return false, nil
	}
	return r.calmly(ctx, t, func() (bool, error) { return r.delete(ctx, &aiv1beta1.Agent{}, t.namespace, agent.Name) })
}

// unapproved chooses an Agent that is not approved yet.
func (r *round) unapproved(ctx context.Context, dice *rand.Rand) (*traveller, *aiv1beta1.Agent) {
	t, state, _ := r.machine(ctx, dice, anyMachine)
	if t == nil {
		return nil, nil
	}
	return t, chosen(dice, slices.DeleteFunc(state.Agents, func(a aiv1beta1.Agent) bool { return a.Spec.Approved }))
}

// lendHost creates an Agent in the namespace of a tenant that pretends to be the host of a master: its InfraEnv has the
// name of the Machine, it is bound to the cluster, and it bears the name and the host of another master.
func (r *round) lendHost(ctx context.Context, dice *rand.Rand) (bool, error) {
	t, state, m := r.machine(ctx, dice, func(_ *lab.State, m lab.Machine) bool { return m.IsControlPlane() })
	if m == nil {
		return false, nil
	}
	healthy := chosen(dice, slices.DeleteFunc(slices.Clone(state.Machines), func(other lab.Machine) bool {
		return !other.IsControlPlane() || other.Name == m.Name || other.Host == nil || !other.Status.NodeRef.IsDefined()
	}))
	if healthy == nil {
		return false, nil
	}
	tenant := t.namespace + "-tenant"
	if err := r.lab.Client().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenant}}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		return false, err
	}
	agent := &aiv1beta1.Agent{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: m.Name, Labels: map[string]string{aiv1beta1.InfraEnvNameLabel: m.Name}},
		Spec: aiv1beta1.AgentSpec{
			ClusterDeploymentName: &aiv1beta1.ClusterReference{Namespace: t.namespace, Name: t.cluster.Name},
			Hostname:              healthy.Status.NodeRef.Name,
			NodeLabels:            map[string]string{metal3.HostUIDLabel: string(healthy.Host.UID)},
		},
	}
	err := r.lab.Client().Create(ctx, agent)
	return err == nil, client.IgnoreAlreadyExists(err)
}

func (r *round) deleteKubeconfig(ctx context.Context, dice *rand.Rand) (bool, error) {
	t, _, _ := r.machine(ctx, dice, anyMachine)
	if t == nil {
		return false, nil
	}
	return r.delete(ctx, &corev1.Secret{}, t.namespace, t.cluster.Name+"-kubeconfig")
}

// deleteBootstrapData takes the Secret of a Machine whose host was not given it yet.
func (r *round) deleteBootstrapData(ctx context.Context, dice *rand.Rand) (bool, error) {
	t, _, m := r.machine(ctx, dice, func(_ *lab.State, m lab.Machine) bool { return m.Config != nil && m.Config.Status.DataSecretName != "" })
	if m == nil {
		return false, nil
	}
	return r.delete(ctx, &corev1.Secret{}, t.namespace, m.Config.Status.DataSecretName)
}

// delete deletes an object, which is no reason for the managers to have made more of certain kinds than one unless it was there.
func (r *round) delete(ctx context.Context, object client.Object, namespace, name string, excused ...string) (bool, error) {
	object.SetNamespace(namespace)
	object.SetName(name)
	err := r.follower.excuse(namespace, excused, func() error { return r.lab.Client().Delete(ctx, object) })
	return err == nil, client.IgnoreNotFound(err)
}

// deleteWholly deletes an object and waits until it is gone: an installation that starts while the deletion is under
// way has been started all the same.
func (r *round) deleteWholly(ctx context.Context, object client.Object, namespace, name string, excused ...string) (bool, error) {
	if err := r.lab.Client().Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, object); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	hit, err := r.delete(ctx, object, namespace, name, excused...)
	for until := time.Now().Add(longestGoing); hit && r.isLeft(ctx, object) && ctx.Err() == nil && time.Now().Before(until); {
		wait(ctx, poll)
	}
	return hit, err
}

// isLeft reports whether an object is still there, and not another one of its name.
func (r *round) isLeft(ctx context.Context, object client.Object) bool {
	now := object.DeepCopyObject().(client.Object)
	err := r.lab.Client().Get(ctx, client.ObjectKeyFromObject(object), now)
	return !apierrors.IsNotFound(err) && now.GetUID() == object.GetUID()
}

// replace deletes an object of the user, who makes it again some seconds later.
func (r *round) replace(ctx context.Context, object client.Object) (bool, error) {
	if err := r.lab.Client().Delete(ctx, object.DeepCopyObject().(client.Object)); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	wait(ctx, shortestOutage)
	object.SetResourceVersion("")
	object.SetUID("")
	object.SetManagedFields(nil)
	object.SetOwnerReferences(nil)
	return true, r.lab.Client().Create(context.WithoutCancel(ctx), object)
}

func (r *round) replacePullSecret(ctx context.Context, dice *rand.Rand) (bool, error) {
	t, _, _ := r.machine(ctx, dice, anyMachine)
	if t == nil {
		return false, nil
	}
	secret := &corev1.Secret{}
	if err := r.lab.Client().Get(ctx, types.NamespacedName{Namespace: t.namespace, Name: t.cluster.Name + "-pull-secret"},
		secret); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return r.replace(ctx, secret)
}

func (r *round) replaceNetwork(ctx context.Context, dice *rand.Rand) (bool, error) {
	networks := &aiv1beta1.NMStateConfigList{}
	if err := r.lab.Client().List(ctx, networks); err != nil {
		return false, err
	}
	network := chosen(dice, networks.Items)
	if network == nil {
		return false, nil
	}
	return r.replace(ctx, network)
}

// stripping takes all labels that are ours from an object of a kind.
func stripping(newList func() client.ObjectList) act {
	return func(r *round, ctx context.Context, dice *rand.Rand) (bool, error) {
		t := chosen(dice, r.travelling())
		if t == nil {
			return false, nil
		}
		list := newList()
		if err := r.lab.Client().List(ctx, list, client.InNamespace((*t).namespace)); err != nil {
			return false, err
		}
		var objects []client.Object
		err := meta.EachListItem(list, func(o runtime.Object) error {
			objects = append(objects, o.(client.Object)) //nolint:forcetypeassert // as all kinds are
			return nil
		})
		if err != nil {
			return false, err
		}
		object := chosen(dice, objects)
		if object == nil {
			return false, nil
		}
		before := (*object).DeepCopyObject().(client.Object)
		labels := maps.Clone((*object).GetLabels())
		maps.DeleteFunc(labels, func(key, _ string) bool { return isOurs(key) })
		if len(labels) == len(before.GetLabels()) {
			return false, nil
		}
		(*object).SetLabels(labels)
		err = r.lab.Client().Patch(ctx, *object, client.MergeFrom(before))
		return err == nil, client.IgnoreNotFound(err)
	}
}

// isOurs tells a label that our managers put there: others are assisted-service's.
func isOurs(key string) bool {
	return key == clusterv1.ClusterNameLabel || key == bootstrapv1.ConfigNameLabel
}

// editInfraEnv writes what is not the product's wish into one of its objects.
func (r *round) editInfraEnv(ctx context.Context, dice *rand.Rand) (bool, error) {
	t, _, m := r.machine(ctx, dice, anyMachine)
	if m == nil {
		return false, nil
	}
	infraEnv := &aiv1beta1.InfraEnv{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: m.Name}}
	patch := fmt.Appendf(nil, `{"spec":{"additionalNTPSources":["ntp-%d.example.com"],"sshAuthorizedKey":"ssh-ed25519 nobody"}}`,
		dice.IntN(10))
	err := r.lab.Client().Patch(ctx, infraEnv, client.RawPatch(types.MergePatchType, patch))
	return err == nil, client.IgnoreNotFound(err)
}

// madhouse is what the host of an Agent is to be called by somebody who may not.
const madhouse = "madhouse"

// editAgent writes into an Agent what its host is not to become, before it is approved.
func (r *round) editAgent(ctx context.Context, dice *rand.Rand) (bool, error) {
	_, agent := r.unapproved(ctx, dice)
	if agent == nil {
		return false, nil
	}
	edited := agent.DeepCopy()
	edited.Spec.Hostname, edited.Spec.Role = madhouse, models.HostRoleWorker
	err := r.lab.Client().Patch(ctx, edited, client.MergeFromWithOptions(agent, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return false, nil // it may be approved by now
	}
	return err == nil, client.IgnoreNotFound(err)
}
