package ignition

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"github.com/coreos/ignition/v2/config/v3_2/types"
)

const (
	defaultSentinelDir = "/var/lib/openshift-agent"
	defaultKubeconfig  = "/var/lib/kubelet/kubeconfig"
	// successSentinel is the file by which Cluster API's contract for bootstrap providers detects a
	// successful bootstrap.
	successSentinel = "/run/cluster-api/bootstrap-success.complete"
	scriptDir       = "/usr/local/bin"
)

// addCommands runs the user's commands once each. A script marks itself as done after its last command
// succeeded.
func addCommands(config *types.Config, in Input) {
	dir := path.Clean(cmp.Or(in.SentinelDir, defaultSentinelDir))
	if len(in.PreCommands) > 0 {
		sentinel := path.Join(dir, "pre-bootstrap.done")
		addScript(config, "openshift-agent-pre-bootstrap", sentinel,
			"After=network.target\nBefore=kubelet.service\n", script("", in.PreCommands, sentinel))
	}
	if len(in.PostCommands) > 0 {
		sentinel := path.Join(dir, "post-bootstrap.done")
		addScript(config, "openshift-agent-post-bootstrap", sentinel,
			"Wants=kubelet.service\nAfter=kubelet.service\n", script(waitForNode(in), in.PostCommands, sentinel))
	}
}

// addScript adds a script and its unit. Units are written without escapes, like go-systemd's unit package
// would: paths were validated to need none.
func addScript(config *types.Config, name, sentinel, order, contents string) {
	file := path.Join(scriptDir, name+".sh")
	addFile(config, file, contents, 0o700)
	addUnit(config, name+".service", fmt.Sprintf(`[Unit]
Description=Commands of the OpenshiftAssistedConfig (%s)
ConditionPathExists=!%s
%s
[Service]
Type=oneshot
RemainAfterExit=yes
TimeoutStartSec=infinity
ExecStart=/bin/bash %s

[Install]
WantedBy=multi-user.target
`, name, sentinel, order, file))
}

func script(wait string, commands []string, sentinel string) string {
	return fmt.Sprintf("#!/bin/bash\nset -euo pipefail\n%s%s\nmkdir -p %s\ntouch %s\n",
		wait, strings.Join(commands, "\n"), path.Dir(sentinel), sentinel)
}

// waitForNode returns the commands that wait until the host's Node exists. Path and name were validated and
// need no quotes, but are quoted all the same.
func waitForNode(in Input) string {
	name := `"$(hostname)"`
	if in.NodeName != "" {
		name = "'" + in.NodeName + "'"
	}
	return fmt.Sprintf(
		"until oc --kubeconfig '%s' get node %s >/dev/null 2>&1; do sleep 10; done\n",
		cmp.Or(in.KubeconfigPath, defaultKubeconfig),
		name,
	)
}

func addSuccessSentinel(config *types.Config) {
	addUnit(config, "openshift-agent-bootstrap-success.service", fmt.Sprintf(`[Unit]
Description=Mark the bootstrap as successful for Cluster API
Wants=kubelet.service
After=kubelet.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/mkdir -p %s
ExecStart=/usr/bin/touch %s

[Install]
WantedBy=multi-user.target
`, path.Dir(successSentinel), successSentinel))
}
