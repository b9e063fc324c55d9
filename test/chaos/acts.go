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
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/faultproxy"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// act disturbs one cluster, or all. hit is false if nothing could be disturbed, or if no process would notice
// it.
type act func(r *round, ctx context.Context, dice *rand.Rand) (hit bool, err error)

// acts are the acts of a storm, by name.
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

// actNames are sorted, so that a seed always selects the same acts.
var actNames = slices.Sorted(maps.Keys(acts))

const (
	shortestOutage, longestOutage = 2 * time.Second, 10 * time.Second
	// The longest wait for the deletion of an object, which may have to wait for assisted-service.
	longestDeletion = 2 * longestOutage
	// A second manager runs for at least secondLife, and until both have written.
	secondLife, longestSecondLife = 15 * time.Second, 45 * time.Second
	shortestStep, longestStep     = 8 * time.Second, 25 * time.Second
)

// steps are the errors of clocks. Servers have wrong clocks before their first NTP query: by minutes, by a time
// zone, or by the age of a battery.
var steps = []time.Duration{
	-400 * 24 * time.Hour, -26 * time.Hour, -time.Hour, -5 * time.Minute, 5 * time.Minute, time.Hour, 26 * time.Hour, 400 * 24 * time.Hour,
}

func chosen[T any](dice *rand.Rand, from []T) *T {
	if len(from) == 0 {
		return nil
	}
	return &from[dice.IntN(len(from))]
}

// killing kills a manager as a crash does; keepRunning starts it again.
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

// stopService makes assisted-service unavailable for a while.
func (r *round) stopService(ctx context.Context, dice *rand.Rand) (bool, error) {
	before := r.lab.Service.Missed()
	r.lab.Service.Leave()
	defer r.lab.Service.Return()
	wait(ctx, between(dice, shortestOutage, longestOutage))
	return r.lab.Service.Missed() > before, nil
}

// cutOff makes the API of a cluster unreachable for a while.
func (r *round) cutOff(ctx context.Context, dice *rand.Rand) (bool, error) {
	t := chosen(dice, r.activeJourneys())
	if t == nil {
		return false, nil
	}
	conn := r.toClusters[(*t).namespace]
	before := conn.Counts()[faultproxy.RequestLost]
	conn.Storm(r.seed, faultproxy.Silence)
	defer r.stormOf((*t).namespace)
	wait(ctx, between(dice, shortestOutage, longestOutage))
	return conn.Counts()[faultproxy.RequestLost] > before, nil
}

// stepping sets the clock of a manager to a wrong time for a while.
func stepping(name string) act {
	return func(r *round, ctx context.Context, dice *rand.Rand) (bool, error) {
		conn, by := r.own[name], *chosen(dice, steps)
		if conn.ClockOffset() != 0 {
			return false, nil // the clock is wrong already
		}
		before := conn.ShiftedTimes()
		conn.StepClock(by)
		defer conn.StepClock(0)
		wait(ctx, between(dice, shortestStep, longestStep))
		return conn.ShiftedTimes() > before, nil
	}
}

// wait waits for a duration, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// doubling runs a second process of a manager for a while, as if both believed to hold the lease.
func doubling(name string) act {
	return func(r *round, ctx context.Context, _ *rand.Rand) (bool, error) {
		second, err := r.second(name)
		if err != nil {
			return false, err
		}
		living, cancel := context.WithTimeout(ctx, longestSecondLife)
		defer cancel()
		conns := []*faultproxy.Proxy{r.own[name], r.own[secondOf(name)]}
		before := []int{conns[0].Writes(), conns[1].Writes()}
		both := func() bool { return conns[0].Writes() > before[0] && conns[1].Writes() > before[1] }
		_ = second.Start(living) // in a storm it may not get ready
		defer second.Kill()
		wait(living, secondLife)
		for living.Err() == nil && !both() {
			wait(living, poll)
		}
		return both(), nil
	}
}

// machine chooses a cluster, and one of its Machines that fit.
func (r *round) machine(ctx context.Context, dice *rand.Rand, fits func(*lab.State, lab.Machine) bool) (*activeJourney,
	*lab.State, *lab.Machine,
) {
	t := chosen(dice, r.activeJourneys())
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

// whenIdle runs an act on a cluster while none of its hosts is being installed, and none can start an
// installation. A deletion of objects of an installation during it would end it. The objects have to show that
// state, because the managers read them.
func (r *round) whenIdle(ctx context.Context, t *activeJourney, act func() (bool, error)) (hit bool, err error) {
	_, err = r.lab.Service.Still(t.cluster.Key(), func() error {
		state, err := t.cluster.State(ctx)
		if err != nil || !isIdle(state) {
			return err
		}
		hit, err = act()
		return err
	})
	return hit, err
}

// isIdle reports whether the objects of a cluster show that none of its hosts is being installed.
func isIdle(s *lab.State) bool {
	if s.ControlPlane != nil && !slices.Contains([]controlplanev1.InstallationPhase{
		"", controlplanev1.InstallationPending, controlplanev1.InstallationInstalled,
	}, s.ControlPlane.Status.Installation.Phase) {
		return false
	}
	if slices.ContainsFunc(s.Agents, func(a aiv1beta1.Agent) bool {
		return a.Spec.Approved && slices.Contains(installingStates, a.Status.DebugInfo.State)
	}) {
		return false
	}
	return s.Installation == nil || slices.Contains([]string{
		"", models.ClusterStatusInsufficient, models.ClusterStatusReady, models.ClusterStatusPendingForInput, models.ClusterStatusAddingHosts,
	}, s.Installation.Status.DebugInfo.State)
}

// installingStates are the states of a host that was approved and is not installed yet.
var installingStates = []string{
	aiv1beta1.HostStatusKnown, aiv1beta1.HostStatusPreparingForInstallation, aiv1beta1.HostStatusPreparingSuccessful,
	aiv1beta1.HostStatusInstalling, aiv1beta1.HostStatusInstallingInProgress, aiv1beta1.HostStatusInstallingPendingUserAction,
}

// bootStranger boots the image of a Machine on a foreign server.
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
	return r.whenIdle(ctx, t, func() (bool, error) {
		return r.deleteWholly(ctx, &aiv1beta1.InfraEnv{}, t.namespace, m.Name, "InfraEnv")
	})
}

// deletingRegistration deletes an object with which a cluster is registered. It has the name of the cluster.
func deletingRegistration(newObject func() client.Object, excused ...string) act {
	return func(r *round, ctx context.Context, dice *rand.Rand) (bool, error) {
		t, _, _ := r.machine(ctx, dice, anyMachine)
		if t == nil {
			return false, nil
		}
		return r.whenIdle(ctx, t, func() (bool, error) { return r.deleteWholly(ctx, newObject(), t.namespace, t.cluster.Name, excused...) })
	}
}

// deleteAgent deletes an Agent whose host is not being installed.
func (r *round) deleteAgent(ctx context.Context, dice *rand.Rand) (bool, error) {
	t, agent := r.unapproved(ctx, dice)
	if agent == nil {
		return false, nil
	}
	return r.whenIdle(ctx, t, func() (bool, error) { return r.delete(ctx, &aiv1beta1.Agent{}, t.namespace, agent.Name) })
}

// unapproved chooses an Agent that is not approved yet.
func (r *round) unapproved(ctx context.Context, dice *rand.Rand) (*activeJourney, *aiv1beta1.Agent) {
	t, state, _ := r.machine(ctx, dice, anyMachine)
	if t == nil {
		return nil, nil
	}
	return t, chosen(dice, slices.DeleteFunc(state.Agents, func(a aiv1beta1.Agent) bool { return a.Spec.Approved }))
}

// lendHost creates an Agent in the namespace of a tenant that pretends to be the host of a master. Its InfraEnv
// has the name of the Machine, it is bound to the cluster, and it has name and host of another master.
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

// deleteBootstrapData deletes the Secret of a Machine whose host has not received it yet.
func (r *round) deleteBootstrapData(ctx context.Context, dice *rand.Rand) (bool, error) {
	t, _, m := r.machine(ctx, dice, func(_ *lab.State, m lab.Machine) bool { return m.Config != nil && m.Config.Status.DataSecretName != "" })
	if m == nil {
		return false, nil
	}
	return r.delete(ctx, &corev1.Secret{}, t.namespace, m.Config.Status.DataSecretName)
}

// delete deletes an object. If it existed, the managers may create one more object of the excused kinds.
func (r *round) delete(ctx context.Context, object client.Object, namespace, name string, excused ...string) (bool, error) {
	object.SetNamespace(namespace)
	object.SetName(name)
	err := r.follower.excuse(namespace, excused, func() error { return r.lab.Client().Delete(ctx, object) })
	return err == nil, client.IgnoreNotFound(err)
}

// deleteWholly deletes an object and waits until it is deleted. An installation that starts during the deletion
// counts as started.
func (r *round) deleteWholly(ctx context.Context, object client.Object, namespace, name string, excused ...string) (bool, error) {
	if err := r.lab.Client().Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, object); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	hit, err := r.delete(ctx, object, namespace, name, excused...)
	for until := time.Now().Add(longestDeletion); hit && r.isLeft(ctx, object) && ctx.Err() == nil && time.Now().Before(until); {
		wait(ctx, poll)
	}
	return hit, err
}

// isLeft reports whether an object still exists, and not another one of its name.
func (r *round) isLeft(ctx context.Context, object client.Object) bool {
	now := object.DeepCopyObject().(client.Object)
	err := r.lab.Client().Get(ctx, client.ObjectKeyFromObject(object), now)
	return !apierrors.IsNotFound(err) && now.GetUID() == object.GetUID()
}

// replace deletes an object of the user, and creates it again some seconds later.
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

// stripping removes all labels of our managers from an object of a kind.
func stripping(newList func() client.ObjectList) act {
	return func(r *round, ctx context.Context, dice *rand.Rand) (bool, error) {
		t := chosen(dice, r.activeJourneys())
		if t == nil {
			return false, nil
		}
		list := newList()
		if err := r.lab.Client().List(ctx, list, client.InNamespace((*t).namespace)); err != nil {
			return false, err
		}
		var objects []client.Object
		err := meta.EachListItem(list, func(o runtime.Object) error {
			objects = append(objects, o.(client.Object)) //nolint:forcetypeassert // all kinds implement it
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

// isOurs reports whether our managers set a label; others belong to assisted-service.
func isOurs(key string) bool {
	return key == clusterv1.ClusterNameLabel || key == bootstrapv1.ConfigNameLabel
}

// editInfraEnv writes unwanted values into an InfraEnv of the bootstrap manager.
func (r *round) editInfraEnv(ctx context.Context, dice *rand.Rand) (bool, error) {
	t, _, m := r.machine(ctx, dice, anyMachine)
	if m == nil {
		return false, nil
	}
	infraEnv := &aiv1beta1.InfraEnv{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: m.Name}}
	patch := fmt.Appendf(nil, `{"spec":{"additionalNTPSources":["ntp-%d.example.com"],"sshAuthorizedKey":"ssh-ed25519 foreign"}}`,
		dice.IntN(10))
	err := r.lab.Client().Patch(ctx, infraEnv, client.RawPatch(types.MergePatchType, patch))
	return err == nil, client.IgnoreNotFound(err)
}

// foreignHostname is the hostname that a foreign client sets in Agents.
const foreignHostname = "madhouse"

// editAgent writes a wrong hostname and role into an Agent before its approval.
func (r *round) editAgent(ctx context.Context, dice *rand.Rand) (bool, error) {
	_, agent := r.unapproved(ctx, dice)
	if agent == nil {
		return false, nil
	}
	edited := agent.DeepCopy()
	edited.Spec.Hostname, edited.Spec.Role = foreignHostname, aiv1beta1.HostRoleWorker
	err := r.lab.Client().Patch(ctx, edited, client.MergeFromWithOptions(agent, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return false, nil // it may have been approved meanwhile
	}
	return err == nil, client.IgnoreNotFound(err)
}
