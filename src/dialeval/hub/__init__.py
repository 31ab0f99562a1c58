"""What goes to the Hub: model cards, licences, thin modules for `evaluate` and their pages."""
