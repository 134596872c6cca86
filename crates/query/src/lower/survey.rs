//! A first pass over the helper files: which methods and constants they define, and which methods call reducers.

use super::text;
use crate::forms::{Form, Reduces};
use ruby_prism as prism;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub(super) struct Survey {
    /// In order of definition; methods of modules as `Module.name`. A later one of the same name counts.
    definitions: Vec<String>,
    calls: BTreeMap<String, BTreeSet<String>>,
    pub(super) constants: BTreeSet<String>,
    pub(super) modules: Vec<String>,
    reducing: BTreeSet<String>,
}

impl Survey {
    pub(super) fn look(&mut self, node: &prism::Node<'_>) {
        let mut walker = Definitions {
            survey: self,
            module: Vec::new(),
        };
        prism::Visit::visit(&mut walker, node);
    }

    /// Follows the calls from helper to helper.
    pub(super) fn close(&mut self) {
        loop {
            let more: Vec<String> = self
                .calls
                .iter()
                .filter(|(name, called)| {
                    !self.reducing.contains(*name) && called.iter().any(|it| self.is_reducer(it))
                })
                .map(|(name, _)| name.clone())
                .collect();
            if more.is_empty() {
                return;
            }
            self.reducing.extend(more);
        }
    }

    pub(super) fn definitions(&self) -> Vec<String> {
        self.definitions.clone()
    }

    pub(super) fn definition(&self, name: &str) -> Option<usize> {
        self.definitions.iter().position(|known| known == name)
    }

    /// Whether this calls a reducer whose result is known at the end of the input only.
    pub(super) fn reduces(&self, node: &prism::Node<'_>) -> bool {
        let mut calls = Calls::default();
        prism::Visit::visit(&mut calls, node);
        calls.names.iter().any(|name| self.is_reducer(name))
    }

    fn is_reducer(&self, name: &String) -> bool {
        self.reducing.contains(name)
            || Form::find(name).is_some_and(|form| {
                form.reduces == Reduces::Always && !(form.is_own && self.definitions.contains(name))
            })
    }
}

/// Names of functions called without a receiver, except inside `apply`.
#[derive(Default)]
struct Calls {
    names: BTreeSet<String>,
}

impl<'pr> prism::Visit<'pr> for Calls {
    fn visit_call_node(&mut self, node: &prism::CallNode<'pr>) {
        let name = text(&node.name());
        if node.receiver().is_none() {
            if name == "apply" {
                if let Some(arguments) = node.arguments() {
                    self.visit_arguments_node(&arguments);
                }
                return;
            }
            self.names.insert(name);
        }
        prism::visit_call_node(self, node);
    }

    fn visit_def_node(&mut self, _: &prism::DefNode<'pr>) {}
}

struct Definitions<'a> {
    survey: &'a mut Survey,
    module: Vec<String>,
}

impl Definitions<'_> {
    fn path(&self, name: &str, between: &str) -> String {
        if self.module.is_empty() {
            name.to_owned()
        } else {
            format!("{}{between}{name}", self.module.join("::"))
        }
    }
}

impl<'pr> prism::Visit<'pr> for Definitions<'_> {
    fn visit_def_node(&mut self, node: &prism::DefNode<'pr>) {
        let name = self.path(&text(&node.name()), ".");
        let mut calls = Calls::default();
        if let Some(body) = node.body() {
            prism::Visit::visit(&mut calls, &body);
        }
        self.survey.calls.insert(name.clone(), calls.names);
        if !self.survey.definitions.contains(&name) {
            self.survey.definitions.push(name);
        }
    }

    fn visit_module_node(&mut self, node: &prism::ModuleNode<'pr>) {
        self.module.push(text(&node.name()));
        let path = self.module.join("::");
        if !self.survey.modules.contains(&path) {
            self.survey.modules.push(path);
        }
        prism::visit_module_node(self, node);
        self.module.pop();
    }

    fn visit_constant_write_node(&mut self, node: &prism::ConstantWriteNode<'pr>) {
        let path = self.path(&text(&node.name()), "::");
        self.survey.constants.insert(path);
        prism::visit_constant_write_node(self, node);
    }

    fn visit_constant_or_write_node(&mut self, node: &prism::ConstantOrWriteNode<'pr>) {
        let path = self.path(&text(&node.name()), "::");
        self.survey.constants.insert(path);
        prism::visit_constant_or_write_node(self, node);
    }
}
