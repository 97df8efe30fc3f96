#!/bin/bash
# The same gate as a lean shell script does it: jq reads the texts, grep looks for the patterns, bash counts the words.
text=$(jq -r '[.tool_input | .entities[]?.observations[]?, .observations[]?.contents[]?, .content // empty] | join("\n")')
[ -n "$text" ] || exit 0

slop='session (complete|end|summary|wrap)|group [a-z] complete|next session[: ]|\[backlog\]|pr merged|pushed to (main|master)|task complete|wrapped up today|completed (today|this session)|all (tasks|steps) (done|complete)'
words=($text)
if grep -qiE "$slop" <<<"$text"; then
  reason='[session_summary] It tells what was done, which git and the transcript keep anyway.'
elif [ "${#words[@]}" -lt 8 ]; then
  reason='[too_short] It has too few words to be understood later.'
else
  exit 0
fi
printf '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "%s"}}' \
  "Memory not stored. $reason Run the /hygiene skill and store the rewritten memory."
