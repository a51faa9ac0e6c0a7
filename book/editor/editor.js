// The editor of the figure Write: CodeMirror with Python's colors, brackets, indentation and undo.
// Bundled by esbuild when the book is built (book/python_files.py), and loaded when it is first used.
//
//   const editor = makeEditor({ parent, text, label, onChange, onRun });
//   editor.text()   editor.set(text)   editor.mark(line, or null)   editor.select(from, to)
//   editor.focus()  editor.end()
//
// Colors are the figure's own variables, so that they follow the page's theme. Tab indents; Escape,
// then Tab, leaves the editor.

import { closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { pythonLanguage } from "@codemirror/lang-python";
import {
  bracketMatching,
  HighlightStyle,
  indentOnInput,
  indentUnit,
  syntaxHighlighting,
} from "@codemirror/language";
import { EditorState, StateEffect, StateField } from "@codemirror/state";
import { Decoration, EditorView, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const look = EditorView.theme({
  "&": { color: "var(--afm-ink)", fontSize: "0.8125rem", border: "1px solid var(--afm-line)" },
  "&.cm-focused": { outline: "2px solid var(--afm-focus)", outlineOffset: "-1px" },
  ".cm-scroller": { fontFamily: "ui-monospace, Menlo, Consolas, monospace", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--afm-ink)", padding: "8px 0" },
  ".cm-cursor": { borderLeftColor: "var(--afm-ink)" },
  ".cm-gutters": {
    color: "var(--afm-soft)",
    background: "var(--afm-raised)",
    borderRight: "1px solid var(--afm-line)",
  },
  ".afm-error-line": {
    background: "color-mix(in srgb, var(--afm-k) 16%, transparent)",
    boxShadow: "inset 3px 0 0 var(--afm-k)",
  },
  "&.cm-focused .cm-matchingBracket": { background: "var(--afm-line)", fontWeight: "600" },
});

const colors = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: "var(--afm-q-text)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--afm-v-text)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--afm-k-text)" },
  { tag: tags.comment, color: "var(--afm-m-text)", fontStyle: "italic" },
  { tag: tags.function(tags.definition(tags.variableName)), color: "var(--afm-o-text)" },
  { tag: tags.definition(tags.className), color: "var(--afm-o-text)" },
]);

const setMark = StateEffect.define();
const marked = StateField.define({
  create: () => Decoration.none,
  update(marks, change) {
    for (const effect of change.effects) {
      if (!effect.is(setMark)) continue;
      if (effect.value === null) return Decoration.none;
      const line = change.state.doc.line(Math.min(effect.value, change.state.doc.lines));
      const shown = Decoration.line({ class: "afm-error-line" });
      return Decoration.set([shown.range(line.from)]);
    }
    return change.docChanged ? Decoration.none : marks;
  },
  provide: (field) => EditorView.decorations.from(field),
});

export function makeEditor({ parent, text, label, onChange, onRun }) {
  const run = () => {
    onRun();
    return true;
  };
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        keymap.of([
          { key: "Mod-Enter", run },
          { key: "Ctrl-Enter", run },
        ]),
        lineNumbers(),
        history(),
        indentUnit.of("    "),
        EditorState.tabSize.of(4),
        indentOnInput(),
        bracketMatching(),
        closeBrackets(),
        pythonLanguage,
        pythonLanguage.data.of({ closeBrackets: { brackets: ["(", "[", "{", "'", '"'] } }),
        syntaxHighlighting(colors),
        look,
        marked,
        EditorView.contentAttributes.of({
          "aria-label": label,
          spellcheck: "false",
          tabindex: "0",
        }),
        EditorView.updateListener.of(({ docChanged, state }) => {
          if (docChanged) onChange(state.doc.toString());
        }),
        keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, indentWithTab]),
      ],
    }),
  });
  return {
    text: () => view.state.doc.toString(),
    set(now) {
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: now } });
    },
    mark: (line) => view.dispatch({ effects: setMark.of(line) }),
    select(from, to) {
      view.dispatch({ selection: { anchor: from, head: to } });
    },
    focus: () => view.focus(),
    end: () => view.destroy(),
  };
}
