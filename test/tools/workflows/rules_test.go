package workflows

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rhysd/actionlint"
)

const root = "../../.."

// writers are the permissions to write, by file and job. A new permission needs a reason that a reviewer accepts.
var writers = map[string][]string{
	"release.yaml publish": {"attestations", "id-token", "packages"},
	"release.yaml release": {"contents"},
}

var (
	pinned = regexp.MustCompile(`^[\w.-]+(/[\w.-]+)+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	uses   = regexp.MustCompile(`(?m)^[ -]*uses: *(.*)$`)
	// called matches a call of make, up to the end of the command.
	called     = regexp.MustCompile(`(?m)(?:^|[;&|(]) *make +([^;&|\n]+)`)
	assignment = regexp.MustCompile(`^([A-Z_]+)=`)
	target     = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
	script     = regexp.MustCompile(`(?m)(?:^|[;&|] *)(\.[\w-]+/[\w./-]+)`)
	secret     = regexp.MustCompile(`\b(secrets\.|github\.token\b)`)
	printing   = regexp.MustCompile(`\b(echo|printf|cat|tee|env|printenv)\b|\bset +-\w*x|<<<`)
)

// workflow is a workflow with its source.
type workflow struct {
	*actionlint.Workflow
	file, source string
	findings     []string
}

// check returns the violations of the rules of this repository. actionlint knows only the rules of GitHub.
func check(file, source string) []string {
	parsed, errs := actionlint.Parse([]byte(source))
	if len(errs) > 0 {
		return []string{errs[0].Error()}
	}
	w := &workflow{Workflow: parsed, file: file, source: source}
	w.checkPins()
	w.checkTriggers()
	w.checkPermissions()
	w.checkSecrets(w.Env, "the workflow", "")
	for _, id := range slices.Sorted(maps.Keys(w.Jobs)) {
		job := w.Jobs[id]
		w.checkJob(job)
		for _, step := range job.Steps {
			switch exec := step.Exec.(type) {
			case *actionlint.ExecAction:
				w.checkCheckout(exec)
			case *actionlint.ExecRun:
				w.checkScript(exec.Run.Value)
				w.checkSecrets(step.Env, "a step of job "+id, exec.Run.Value)
			}
		}
	}
	return w.findings
}

func (w *workflow) addf(format string, args ...any) {
	w.findings = append(w.findings, fmt.Sprintf(format, args...))
}

// checkPins requires full commits, because a tag can be moved. Actions of this repository need no pin.
func (w *workflow) checkPins() {
	for _, match := range uses.FindAllStringSubmatch(w.source, -1) {
		if used := strings.TrimSpace(match[1]); !strings.HasPrefix(used, "./") && !pinned.MatchString(used) {
			w.addf("%s is not pinned by a full commit with its version in a comment", used)
		}
	}
}

// checkTriggers forbids events that give the secrets of this repository to the code of a pull request.
func (w *workflow) checkTriggers() {
	for _, event := range w.On {
		if name := event.EventName(); name == "pull_request_target" || name == "workflow_run" {
			w.addf("event %s runs with the rights of the repository", name)
		}
	}
}

// checkPermissions requires that the workflow declares permissions, and that only the jobs in writers may write.
func (w *workflow) checkPermissions() {
	if w.Permissions == nil {
		w.addf("the workflow declares no permissions, so its jobs get those of the repository")
		return
	}
	w.checkWriters(w.Permissions, nil, "the workflow")
	for _, id := range slices.Sorted(maps.Keys(w.Jobs)) {
		if permissions := w.Jobs[id].Permissions; permissions != nil {
			w.checkWriters(permissions, writers[w.file+" "+id], "job "+id)
		}
	}
}

func (w *workflow) checkWriters(permissions *actionlint.Permissions, allowed []string, of string) {
	if permissions.All != nil {
		w.addf("%s has the permissions %s of everything", of, permissions.All.Value)
	}
	for _, name := range slices.Sorted(maps.Keys(permissions.Scopes)) {
		if permissions.Scopes[name].Value.Value == "write" && !slices.Contains(allowed, name) {
			w.addf("%s may write %s", of, name)
		}
	}
}

// checkJob requires a limit of time and a runner whose image does not change to another release of its system.
func (w *workflow) checkJob(job *actionlint.Job) {
	if job.TimeoutMinutes == nil {
		w.addf("job %s has no timeout-minutes", job.ID.Value)
	}
	if job.RunsOn == nil || len(job.RunsOn.Labels) != 1 || job.RunsOn.Labels[0].Value != "ubuntu-24.04" {
		w.addf("job %s does not run on ubuntu-24.04", job.ID.Value)
	}
	w.checkSecrets(job.Env, "job "+job.ID.Value, "")
}

// checkCheckout requires that a checkout leaves no token to the code that later steps run.
func (w *workflow) checkCheckout(action *actionlint.ExecAction) {
	if !strings.HasPrefix(action.Uses.Value, "actions/checkout@") {
		return
	}
	if input := action.Inputs["persist-credentials"]; input == nil || input.Value.Value != "false" {
		w.addf("a checkout keeps its token: set persist-credentials: false")
	}
}

// checkScript forbids expressions, whose values the shell would run, and requires that the called targets, variables
// and scripts exist.
func (w *workflow) checkScript(text string) {
	if strings.Contains(text, "${{") {
		w.addf("a script contains an expression: pass the value in env")
	}
	text = strings.ReplaceAll(text, "\\\n", " ")
	makefile := file("Makefile")
	for _, match := range called.FindAllStringSubmatch(text, -1) {
		for argument := range strings.FieldsSeq(match[1]) {
			if variable := assignment.FindStringSubmatch(argument); variable != nil {
				if !knows(makefile, variable[1]) {
					w.addf("the Makefile has no variable %s", variable[1])
				}
			} else if !slices.ContainsFunc(target.FindAllStringSubmatch(makefile, -1), func(t []string) bool { return t[1] == argument }) {
				w.addf("the Makefile has no target %s", argument)
			}
		}
	}
	for _, match := range script.FindAllStringSubmatch(text, -1) {
		if info, err := os.Stat(filepath.Join(root, match[1])); err != nil || info.Mode()&0o111 == 0 {
			w.addf("%s does not exist or is not executable", match[1])
		}
	}
}

// checkSecrets requires that only a step has a secret in its environment, and that the script of this step cannot print
// the secret. The text of a script without environment is empty.
func (w *workflow) checkSecrets(env *actionlint.Env, of, script string) {
	if env == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(env.Vars)) {
		variable := env.Vars[name]
		switch {
		case !secret.MatchString(variable.Value.Value):
		case script == "":
			w.addf("%s gives the secret %s to all steps", of, variable.Name.Value)
		case printing.MatchString(script) || regexp.MustCompile(`\$\{?`+variable.Name.Value+`\b`).MatchString(script):
			w.addf("%s could print the secret %s", of, variable.Name.Value)
		}
	}
}

// knows returns whether a Makefile reads a variable.
func knows(makefile, variable string) bool { return strings.Contains(makefile, "$("+variable+")") }

// file returns the content of a file of the repository. A missing file is empty and violates the rules that read it.
func file(path string) string {
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		return ""
	}
	return string(content)
}
